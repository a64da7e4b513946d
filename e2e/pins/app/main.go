// Command app stands for a container that reads configuration, and does nothing with it:
// what it has read is looked at from outside (its environment, its files). It answers on a
// port of its own, because the containers of a pod share its network:
//
//	app strict 3000    exits at once when $SETTING says "bad"
//	app late 3000      exits two seconds later
//	app unready 3000   does not answer then
//	app lenient 3001   takes whatever it gets
package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "app:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 3 {
		return errors.New("want strict, late, unready or lenient, and a port")
	}
	if mistake := errors.New("there is a mistake in SETTING"); strings.Contains(os.Getenv("SETTING"), "bad") {
		switch os.Args[1] {
		case "strict":
			return mistake
		case "unready":
			time.Sleep(time.Hour)
			return mistake
		case "late":
			time.AfterFunc(2*time.Second, func() {
				fmt.Fprintln(os.Stderr, "app:", mistake)
				os.Exit(1)
			})
		}
	}
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	server := &http.Server{Addr: ":" + os.Args[2], Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	return server.ListenAndServe()
}
