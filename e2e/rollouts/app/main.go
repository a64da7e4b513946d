// Command app stands for the workloads of a fleet. It reads $SETTING when it
// starts, and never again, and what it does with a bad one depends on its manner:
//
//	app strict    exits at once, as an application that checks its configuration
//	app late      exits after three seconds, as one that uses it only then
//	app needy     exits at once, unless the Service "dependency" answers
//	app lenient   goes on
//
// While it runs it answers on port 3000.
package main

import (
	"errors"
	"fmt"
	"net"
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
	if len(os.Args) != 2 {
		return errors.New("want one word: strict, late, needy or lenient")
	}
	if strings.Contains(os.Getenv("SETTING"), "bad") {
		switch os.Args[1] {
		case "strict":
			return errors.New("there is a mistake in SETTING")
		case "late":
			time.AfterFunc(3*time.Second, func() {
				fmt.Fprintln(os.Stderr, "app: there is a mistake in SETTING")
				os.Exit(1)
			})
		case "needy":
			if err := ask(os.Getenv("DEPENDENCY_SERVICE_HOST")); err != nil {
				return fmt.Errorf("SETTING wants the dependency: %w", err)
			}
		}
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "at your service") })
	server := &http.Server{Addr: ":3000", Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	return server.ListenAndServe()
}

func ask(host string) error {
	client := &http.Client{Timeout: time.Second}
	response, err := client.Get("http://" + net.JoinHostPort(host, "3000"))
	if err != nil {
		return err
	}
	return response.Body.Close()
}
