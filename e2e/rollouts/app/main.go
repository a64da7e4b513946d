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
	manner, known := map[string]func() error{"strict": exit, "late": exitLater, "needy": ask, "lenient": goOn}[os.Args[1]]
	if !known {
		return fmt.Errorf("there is no %q", os.Args[1])
	}
	if strings.Contains(os.Getenv("SETTING"), "bad") {
		if err := manner(); err != nil {
			return err
		}
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "at your service") })
	server := &http.Server{Addr: ":3000", Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	return server.ListenAndServe()
}

var errSetting = errors.New("there is a mistake in SETTING")

func exit() error { return errSetting }

func exitLater() error {
	time.AfterFunc(3*time.Second, func() {
		fmt.Fprintln(os.Stderr, "app:", errSetting)
		os.Exit(1)
	})
	return nil
}

func ask() error {
	client := &http.Client{Timeout: time.Second}
	response, err := client.Get("http://" + net.JoinHostPort(os.Getenv("DEPENDENCY_SERVICE_HOST"), "3000"))
	if err != nil {
		return fmt.Errorf("SETTING wants the dependency: %w", err)
	}
	return response.Body.Close()
}

func goOn() error { return nil }
