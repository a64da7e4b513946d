package neighbours

import (
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/e2e/harness"
)

// repository is a Git repository that is served as hosts do, by Git's own program.
type repository struct {
	dir string
	// URL is where others clone it from, by HTTP on the loopback.
	URL string
}

// newRepository makes one with a branch main that has these files.
func newRepository(t *testing.T, files map[string]string) *repository {
	t.Helper()
	root := t.TempDir()
	r := &repository{dir: filepath.Join(root, "work")}
	harness.Must(t, os.Mkdir(r.dir, 0o700))
	r.git(t, "init", "-q", "-b", "main")
	r.commit(t, "the first", files)
	bare := filepath.Join(root, "all.git")
	r.git(t, "clone", "-q", "--bare", r.dir, bare)
	r.git(t, "remote", "add", "origin", bare)
	where, err := exec.Command("git", "--exec-path").Output()
	harness.Must(t, err)
	server := httptest.NewServer(&cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(where)), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"},
	})
	t.Cleanup(server.Close)
	r.URL = server.URL + "/all.git"
	return r
}

// push is a commit that others see. A file without text goes.
func (r *repository) push(t *testing.T, message string, files map[string]string) {
	t.Helper()
	r.commit(t, message, files)
	r.git(t, "push", "-q", "origin", "main")
}

func (r *repository) commit(t *testing.T, message string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(r.dir, name)
		if text == "" {
			harness.Must(t, os.Remove(file))
			continue
		}
		harness.Must(t, os.MkdirAll(filepath.Dir(file), 0o700))
		harness.Must(t, os.WriteFile(file, []byte(text), 0o600))
	}
	r.git(t, "add", "-A")
	r.git(t, "-c", "user.name=somebody", "-c", "user.email=somebody@example.com", "commit", "-q", "--allow-empty", "-m", message)
}

func (r *repository) git(t *testing.T, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", args...)
	command.Dir = r.dir
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// head is the commit that others see.
func (r *repository) head(t *testing.T) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", "rev-parse", "HEAD")
	command.Dir = r.dir
	out, err := command.Output()
	harness.Must(t, err)
	return strings.TrimSpace(string(out))
}
