package docs

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/configstamp/configstamp/"

// imports are what the product's files of a package import. They are parsed here, and not
// asked of go list, because go test would not see that its cached result is stale.
func imports(t *testing.T, folder string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d Go files, error %v", folder, len(files), err)
	}
	all := map[string]bool{}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range file.Imports {
			of, err := strconv.Unquote(one.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			all[of] = true
		}
	}
	return all
}

// knows permits the standard library, and some packages of ours.
func knows(ours ...string) func(path string) bool {
	return func(path string) bool {
		first, _, _ := strings.Cut(path, "/")
		of, its := strings.CutPrefix(path, module)
		return !strings.Contains(first, ".") || its && slices.Contains(ours, of)
	}
}

// pureTypes permits Kubernetes' own types, without any client.
func pureTypes(path string) bool {
	return strings.HasPrefix(path, "k8s.io/api/") || path == "k8s.io/apimachinery/pkg/types" || path == "k8s.io/apimachinery/pkg/apis/meta/v1" || path == "k8s.io/apimachinery/pkg/labels"
}

// The rules know nothing of what asks them.
func TestWalls_RulesArePure(t *testing.T) {
	for folder, may := range map[string]func(path string) bool{
		"checksum":          func(path string) bool { return !strings.HasPrefix(path, module) },
		"internal/rollout":  knows("checksum", "internal/workload"),
		"internal/forecast": knows("checksum", "internal/workload", "internal/rollout"),
		"internal/answer": func(path string) bool {
			return pureTypes(path) || knows("checksum", "internal/workload", "internal/rollout", "internal/forecast", "internal/podtruth", "internal/seen")(path)
		},
		"internal/podtruth": func(path string) bool { return pureTypes(path) || knows("checksum")(path) },
		"internal/pinning":  func(path string) bool { return pureTypes(path) || knows("checksum")(path) },
		"internal/draw":     knows("internal/answer"),
		"internal/manifest": func(path string) bool {
			return path != "os" && path != "net/http" && !strings.HasPrefix(path, "k8s.io/client-go") && (!strings.HasPrefix(path, module) || knows("checksum", "internal/workload")(path))
		},
		"internal/seen": func(path string) bool {
			return pureTypes(path) || knows("checksum", "internal/workload", "internal/rollout")(path)
		},
		"internal/waiting": func(path string) bool {
			first, _, _ := strings.Cut(path, "/")
			standard := !strings.Contains(first, ".")
			return standard || path == module+"checksum" || path == module+"internal/rollout" || path == module+"internal/workload"
		},
		"internal/shortlist": knows(),
		"internal/index": func(path string) bool { // it is filled by others, and asked by several
			first, _, _ := strings.Cut(path, "/")
			standard := !strings.Contains(first, ".")
			return standard || strings.HasPrefix(path, "k8s.io/apimachinery/") || path == module+"checksum" || path == module+"internal/rollout" || path == module+"internal/workload"
		},
	} {
		for path := range imports(t, folder) {
			if !may(path) {
				t.Errorf("%s must not import %s: CONTRIBUTING.md says what it knows", folder, path)
			}
		}
	}
}

// Neither process knows the other, not even by way of a third package.
func TestWalls_WebhookAndControllerDoNotKnowEachOther(t *testing.T) {
	for from, other := range map[string]string{"webhook": "controller", "controller": "webhook"} {
		reached := map[string]bool{}
		var reach func(folder, by string)
		reach = func(folder, by string) {
			if folder == other {
				t.Errorf("%s must not import %s; it does, by %s", from, other, by)
			}
			if reached[folder] {
				return
			}
			reached[folder] = true
			for path := range imports(t, folder) {
				if ours, its := strings.CutPrefix(path, module); its {
					reach(ours, folder)
				}
			}
		}
		reach(from, from)
		if len(reached) < 3 {
			t.Errorf("%s reaches only %v", from, reached)
		}
	}
}

// Impact warnings know what an edit does by what they are told of it: neither who foresees it,
// nor any client. What they share with the webhook knows nothing of ours.
func TestWalls_ImpactKnowsNoCluster(t *testing.T) {
	reached := map[string]bool{}
	var reach func(folder string)
	reach = func(folder string) {
		if reached[folder] {
			return
		}
		reached[folder] = true
		for path := range imports(t, folder) {
			if strings.HasPrefix(path, "k8s.io/client-go/") {
				t.Errorf("%s must not import %s", folder, path)
			}
			if ours, its := strings.CutPrefix(path, module); its {
				reach(ours)
			}
		}
	}
	reach("internal/impact")
	for _, apart := range []string{"controller", "webhook", "internal/index", "internal/source", "internal/keyring"} {
		if reached[apart] {
			t.Errorf("internal/impact must not import %s, not even by way of a third package", apart)
		}
	}
	for path := range imports(t, "internal/admission") {
		if strings.HasPrefix(path, module) {
			t.Errorf("internal/admission must not import %s", path)
		}
	}
	if len(reached) < 5 {
		t.Errorf("internal/impact reaches only %v", reached)
	}
}

// The plugin has its user's rights alone: it must not come near the digest key, nor near
// what holds the content of sources. Its rooms lie one above the other: the command, order,
// inspect, answer, seen.
func TestWalls_PluginStandsAlone(t *testing.T) {
	const plugin = "cmd/kubectl-configstamp"
	rooms := []string{plugin, "internal/order", "internal/inspect", "internal/answer", "internal/seen"}
	reached := map[string]bool{}
	var reach func(folder string)
	reach = func(folder string) {
		if reached[folder] {
			return
		}
		reached[folder] = true
		for path := range imports(t, folder) {
			ours, its := strings.CutPrefix(path, module)
			if !its {
				continue
			}
			if at, of := slices.Index(rooms, folder), slices.Index(rooms, ours); of >= 0 && of < at {
				t.Errorf("%s must not import %s, which stands above it", folder, ours)
			}
			reach(ours)
		}
	}
	reach(plugin)
	for _, apart := range []string{"controller", "webhook", "internal/keyring", "internal/source", "certs"} {
		if reached[apart] {
			t.Errorf("%s must not import %s, not even by way of a third package", plugin, apart)
		}
	}
	if len(reached) < 6 {
		t.Errorf("%s reaches only %v", plugin, reached)
	}
}

// The clientset and what stands on it link every group of the API: half of the program, and
// a third of its memory.
func TestWalls_NoClientset(t *testing.T) {
	seen := 0
	var reach func(folder string)
	reached := map[string]bool{}
	reach = func(folder string) {
		if reached[folder] {
			return
		}
		reached[folder] = true
		for path := range imports(t, folder) {
			seen++
			for _, heavy := range []string{"kubernetes", "informers", "listers", "discovery", "dynamic", "metadata", "tools/events", "tools/record", "tools/leaderelection", "applyconfigurations"} {
				if heavy = "k8s.io/client-go/" + heavy; path == heavy || strings.HasPrefix(path, heavy+"/") && path != "k8s.io/client-go/tools/record/util" {
					t.Errorf("%s must not import %s: see package internal/objects", folder, path)
				}
			}
			if ours, its := strings.CutPrefix(path, module); its {
				reach(ours)
			}
		}
	}
	reach("cmd/configstamp")
	if len(reached) < 15 || seen < 100 {
		t.Errorf("%d imports of %d packages were looked at", seen, len(reached))
	}
}
