package state

import (
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestValidateName(t *testing.T) {
	for _, name := range []string{"configstamp", "a", "e2e-1", strings.Repeat("a", 30)} {
		if err := ValidateName(name); err != nil {
			t.Errorf("%q should be a name: %v", name, err)
		}
	}
	for _, name := range []string{"", "A", "a_b", "-a", "a-", "../x", "a/b", "a.b", "a b", strings.Repeat("a", 31)} {
		if err := ValidateName(name); err == nil {
			t.Errorf("%q should not be a name", name)
		}
	}
}

func TestCacheDirTakesTheMostSpecificVariable(t *testing.T) {
	for want, set := range map[string]map[string]string{
		"/c":                    {"CONFIGSTAMP_CACHE": "/c", "XDG_CACHE_HOME": "/x", "HOME": "/h"},
		"/x/configstamp":        {"XDG_CACHE_HOME": "/x", "HOME": "/h"},
		"/h/.cache/configstamp": {"HOME": "/h"},
	} {
		got, err := CacheDir(func(name string) string { return set[name] })
		if err != nil || got != want {
			t.Errorf("with %v: got %q, %v, want %q", set, got, err, want)
		}
	}
	if _, err := CacheDir(func(string) string { return "" }); err == nil {
		t.Error("without any variable there should be an error")
	}
}

func TestAClusterIsRemembered(t *testing.T) {
	cache := t.TempDir()
	if _, err := Load(cache, "one"); !errors.Is(err, ErrNoCluster) {
		t.Fatalf("before it is saved: %v, want ErrNoCluster", err)
	}
	c := New(cache, "one")
	c.Node, c.Created, c.Ports.APIServer = NodeKwok, time.Unix(1, 0).UTC(), 20000
	if err := c.MakeDirs(); err != nil {
		t.Fatal(err)
	}
	if err := c.Save(); err != nil {
		t.Fatal(err)
	}
	back, err := Load(cache, "one")
	if err != nil || !reflect.DeepEqual(back, c) {
		t.Errorf("got %+v, %v, want %+v", back, err, c)
	}
	all, err := All(cache)
	if err != nil || len(all) != 1 || all[0].Dir() != filepath.Join(cache, "clusters", "one") {
		t.Errorf("all clusters are %v, %v", all, err)
	}
}

func TestLinkNamesFitTheKernel(t *testing.T) {
	host, cluster := New("/c", strings.Repeat("a", 30)).Links()
	if len(host) > 15 || len(cluster) > 15 || host == cluster {
		t.Errorf("links %q and %q", host, cluster)
	}
}
