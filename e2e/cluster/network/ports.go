// Package network finds free ports and addresses, and joins a cluster that has a network namespace of its own to the
// host. Nothing in it listens on anything but the loopback.
package network

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken from below the range that the kernel gives to outgoing connections, which could take one between
// its choice and its use.
const (
	firstPort = 20000
	lastPort  = 29999
	attempts  = 1000
)

// FreePorts finds n ports of the loopback that nobody listens on and that are not in taken.
func FreePorts(n int, taken map[int]bool) ([]int, error) {
	found := make([]int, 0, n)
	used := map[int]bool{}
	for range attempts {
		if len(found) == n {
			return found, nil
		}
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		if taken[port] || used[port] || !free(port) {
			continue
		}
		used[port] = true
		found = append(found, port)
	}
	return nil, fmt.Errorf("looking for %d free ports from %d to %d: only %d found", n, firstPort, lastPort, len(found))
}

func free(port int) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}
