package certs

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// The file is followed, also as the kubelet changes it; one that cannot be read, or is half
// written, changes nothing; and while there was none nobody is let in.
func TestAuthoritiesFollowTheirFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "ca.crt")
		write := func(text []byte) {
			fatal(t, os.WriteFile(file, text, 0o600))
			time.Sleep(readEvery + time.Second)
			synctest.Wait()
		}
		first, second := newCA(t), newCA(t)
		var out lockedBuffer
		ctx := logTo(t, &out)
		authorities := AuthoritiesFrom(ctx, file)
		running := make(chan struct{})
		go func() {
			defer close(running)
			authorities.Run(ctx)
		}()
		t.Cleanup(func() { <-running })
		want := func(about string, all ...pair) {
			t.Helper()
			pool := x509.NewCertPool()
			for _, one := range all {
				pool.AppendCertsFromPEM(one.certPEM)
			}
			if !authorities.Pool().Equal(pool) {
				t.Errorf("%s: other authorities count", about)
			}
		}
		time.Sleep(time.Second)
		want("no file")
		write([]byte("no certificate"))
		want("no certificate in it")
		write(first.certPEM)
		want("the first", first)
		write(append(append([]byte{}, first.certPEM...), second.certPEM...))
		want("both", first, second)
		write([]byte("half"))
		want("half a file", first, second)
		fatal(t, os.Remove(file))
		time.Sleep(readEvery + time.Second)
		want("the file is gone", first, second)
		write(second.certPEM)
		want("the second", second)
	})
}
