// Command app stands for the workloads of a fleet. It reads $SETTING when it
// starts, and never again, and what it does with a bad one depends on its manner:
//
//	app strict    exits at once, as an application that checks its configuration
//	app late      exits after three seconds, as one that uses it only then
//	app later     exits after fifteen seconds
//	app latest    exits after forty seconds
//	app slow      exits at once; with a good one it takes fifteen seconds to end
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
	"os/signal"
	"strings"
	"syscall"
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
		return errors.New("want one word: strict, late, later, latest, slow, needy or lenient")
	}
	manner, known := map[string]func() error{
		"strict": exit, "late": exitAfter(3 * time.Second), "later": exitAfter(15 * time.Second), "latest": exitAfter(40 * time.Second), "slow": exit, "needy": ask, "lenient": goOn,
	}[os.Args[1]]
	if !known {
		return fmt.Errorf("there is no %q", os.Args[1])
	}
	if strings.Contains(os.Getenv("SETTING"), "bad") {
		if err := manner(); err != nil {
			return err
		}
	}
	if os.Args[1] == "slow" {
		go endAfter(15 * time.Second)
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "at your service") })
	server := &http.Server{Addr: ":3000", Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	return server.ListenAndServe()
}

var errSetting = errors.New("there is a mistake in SETTING")

func exit() error { return errSetting }

func exitAfter(wait time.Duration) func() error {
	return func() error {
		time.AfterFunc(wait, func() {
			fmt.Fprintln(os.Stderr, "app:", errSetting)
			os.Exit(1)
		})
		return nil
	}
}

// endAfter ends a while after it was asked to.
func endAfter(wait time.Duration) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	<-asked
	time.Sleep(wait)
	os.Exit(0)
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
