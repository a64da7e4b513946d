// Command app stands for the applications of the demonstration. Like most, it
// reads its configuration once, when it starts, and never again.
//
//	app web     answers GET / with $MESSAGE
//	app config  answers GET / with every $SETTING_..., sorted
//	app strict  the same, and ends when $SETTING_TIMEOUT is no duration
//	app tls     answers GET / with the serial number of /etc/tls/tls.crt
//	app db      is a database that knows one password, $PASSWORD
//	app tier    answers GET / when that database takes $MYSQL_PASSWORD
//	app check   exits with 0 if it does (a readiness probe)
package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
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
		return errors.New("want one word: web, config, strict, tls, db, tier or check")
	}
	switch os.Args[1] {
	case "web":
		return serve(os.Getenv("MESSAGE"))
	case "config":
		return serve(settings())
	case "strict":
		if _, err := time.ParseDuration(os.Getenv("SETTING_TIMEOUT")); err != nil {
			return err
		}
		return serve(settings())
	case "tls":
		return serveSerial()
	case "db":
		return serveDatabase(os.Getenv("PASSWORD"))
	case "tier":
		return serve("connected to " + os.Getenv("MYSQL_HOST"))
	case "check":
		return logIn(os.Getenv("MYSQL_HOST"), os.Getenv("MYSQL_PASSWORD"))
	}
	return fmt.Errorf("no such application: %q", os.Args[1])
}

func serve(answer string) error {
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, answer) })
	server := &http.Server{Addr: ":3000", Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	return server.ListenAndServe()
}

func settings() string {
	var found []string
	for _, variable := range os.Environ() {
		if strings.HasPrefix(variable, "SETTING_") {
			found = append(found, variable)
		}
	}
	slices.Sort(found)
	return strings.Join(found, " ")
}

func serveSerial() error {
	pair, err := tls.LoadX509KeyPair("/etc/tls/tls.crt", "/etc/tls/tls.key")
	if err != nil {
		return err
	}
	certificate, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return err
	}
	return serve(fmt.Sprintf("serial %x", certificate.SerialNumber))
}

func serveDatabase(password string) error {
	listener, err := net.Listen("tcp", ":3306")
	if err != nil {
		return err
	}
	for {
		connection, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer connection.Close()
			_ = connection.SetDeadline(time.Now().Add(5 * time.Second))
			var given string
			if _, err := fmt.Fscanln(connection, &given); err == nil && given == password {
				fmt.Fprintln(connection, "welcome")
			}
		}()
	}
}

func logIn(host, password string) error {
	connection, err := net.DialTimeout("tcp", net.JoinHostPort(host, "3306"), 2*time.Second)
	if err != nil {
		return err
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return err
	}
	fmt.Fprintln(connection, password)
	var answer string
	if _, err := fmt.Fscanln(connection, &answer); err != nil {
		return errors.New("access denied")
	}
	return nil
}
