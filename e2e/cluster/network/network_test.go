package network

import (
	"net"
	"strconv"
	"testing"
)

func TestFreePortsAreDifferentAndFree(t *testing.T) {
	taken := map[int]bool{}
	for range 20 {
		ports, err := FreePorts(5, taken)
		if err != nil {
			t.Fatal(err)
		}
		for _, port := range ports {
			if taken[port] {
				t.Errorf("port %d was given twice", port)
			}
			taken[port] = true
		}
	}
}

func TestAPortInUseIsNotFree(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	if free(number) {
		t.Errorf("port %d is listened on, and said to be free", number)
	}
}

func TestClustersGetDifferentAddresses(t *testing.T) {
	taken := map[int]bool{}
	for range 50 {
		addresses, err := ChooseAddresses("same-name", taken)
		if err != nil {
			t.Fatal(err)
		}
		if taken[addresses.Index] {
			t.Fatalf("index %d was given twice", addresses.Index)
		}
		taken[addresses.Index] = true
	}
}

func TestAddressesOfTheHostAreAvoided(t *testing.T) {
	addresses := AddressesFor(7)
	for interfaceAddress, want := range map[string]bool{
		"10.231.7.1/30": true, "10.244.7.9/32": true, "10.0.0.1/8": true, "192.168.0.1/16": false, "10.231.8.1/30": false,
	} {
		ip, network, err := net.ParseCIDR(interfaceAddress)
		if err != nil {
			t.Fatal(err)
		}
		network.IP = ip
		if got := overlaps(addresses, []net.Addr{network}); got != want {
			t.Errorf("an interface at %s: overlaps is %v, want %v", interfaceAddress, got, want)
		}
	}
}
