package keyring

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/cache/follow/fakeapi"
	"github.com/configstamp/configstamp/internal/cache/objects"
)

const (
	namespace  = "configstamp"
	secretName = "configstamp-key"
	grace      = time.Minute
)

// installation is a cluster with one Secret and some processes, in a bubble.
type installation struct {
	*testing.T
	*fakeapi.Server
	ctx    context.Context
	logged *lockedText
}

var errAway = apierrors.NewServiceUnavailable("away")

type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedText) add(prefix, args string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.WriteString(prefix + args + "\n")
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newInstallation(t *testing.T, data map[string][]byte) *installation {
	time.Sleep(time.Until(noon)) // a bubble begins in another year
	in := &installation{T: t, Server: fakeapi.Piped(t), logged: &lockedText{}}
	in.ctx = klog.NewContext(t.Context(), funcr.New(in.logged.add, funcr.Options{Verbosity: 7}))
	if data != nil {
		in.store(data)
	}
	t.Cleanup(func() {
		for _, value := range in.data() {
			text := in.logged.String()
			if len(value) == checksum.KeySize && (strings.Contains(text, string(value)) || strings.Contains(text, strings.Trim(fmt.Sprint(value), "[]"))) { //nolint:staticcheck // as %v would print it
				t.Error("a key was logged")
			}
		}
	})
	return in
}

// store makes data what the Secret holds.
func (in *installation) store(data map[string][]byte) {
	in.Put("secrets", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secretName}, Data: data})
}

// secret returns an empty one if there is none.
func (in *installation) secret() *corev1.Secret {
	if secret, ok := in.Get("secrets", namespace, secretName).(*corev1.Secret); ok {
		return secret
	}
	return &corev1.Secret{}
}

func (in *installation) data() map[string][]byte { return in.secret().Data }

// keyring is that of one more process.
func (in *installation) keyring() *Keyring {
	secrets, err := objects.New[*corev1.Secret](in.Config(), corev1.SchemeGroupVersion, corev1.AddToScheme, "secrets", namespace)
	if err != nil {
		in.Fatal(err)
	}
	return New(secrets, namespace, secretName, grace, clock.RealClock{})
}

// start runs one more process until the test ends or stop is called.
func (in *installation) start() (k *Keyring, stop func()) {
	k = in.keyring()
	ctx, cancel := context.WithCancel(in.ctx)
	var running sync.WaitGroup
	running.Go(func() { _ = k.Run(ctx) })
	stop = func() {
		cancel()
		running.Wait()
	}
	in.Cleanup(stop)
	return k, stop
}

// eventually lets time pass in small steps, a minute at most, until what holds.
func (in *installation) eventually(what string, holds func() bool) {
	in.Helper()
	for range 3000 {
		if holds() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	in.Fatalf("not in time: %s\n%s", what, in.logged)
}

func (in *installation) hasData(what string, want map[string][]byte) {
	in.Helper()
	in.eventually(what, func() bool { return maps.EqualFunc(in.data(), want, bytes.Equal) })
}

// signs is the id of the key that makes new digests, "" if there is none.
func signs(k *Keyring) string {
	ring := k.Ring()
	if ring == nil {
		return ""
	}
	return strings.Split(ring.Digest("shop", checksum.Selection{All: true}, &checksum.Content{}), ":")[1]
}

func verifies(k *Keyring, id string) bool {
	ring := k.Ring()
	if ring == nil {
		return false
	}
	_, ok := ring.Key(id)
	return ok
}

func TestFirstStartMakesAKeyAndUsesItOnceStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newInstallation(t, nil)
		in.Refuse("POST", fakeapi.ErrForbidden)
		k, _ := in.start()
		in.eventually("the failure is logged", func() bool { return strings.Contains(in.logged.String(), "the right to create it is needed") })
		if k.Ring() != nil || k.HasSynced() {
			t.Error("a ring of a key that is not stored")
		}
		in.Refuse("POST", nil)
		in.eventually("a ring", k.HasSynced)
		secret := in.secret()
		if secret.Labels["app.kubernetes.io/name"] != "configstamp" || secret.Type != corev1.SecretTypeOpaque || len(secret.Data) != 1 {
			t.Errorf("labels %v, type %s, %d entries", secret.Labels, secret.Type, len(secret.Data))
		}
		if c := parse(secret.Data); len(c.entries) != 1 || c.entries[0].key.ID() != signs(k) {
			t.Errorf("stored %v, signs with %s", c.entries, signs(k))
		}
	})
}

func TestReplicasThatRaceShareOneKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newInstallation(t, nil)
		begun := time.Now()
		var keyrings []*Keyring
		for range 8 {
			k, _ := in.start()
			keyrings = append(keyrings, k)
		}
		for _, k := range keyrings {
			in.eventually("a ring", k.HasSynced)
			if signs(k) != signs(keyrings[0]) {
				t.Errorf("one signs with %s, another with %s", signs(keyrings[0]), signs(k))
			}
		}
		if took := time.Since(begun); len(in.data()) != 1 || took >= firstBackoff {
			t.Errorf("%d keys after %s", len(in.data()), took)
		}
	})
}

func TestUpdateThatConflictsIsBegunAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newInstallation(t, map[string][]byte{})
		var once sync.Once
		in.Intercept = func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPut {
				once.Do(func() { in.store(map[string][]byte{name(-time.Second): keyOf(1)}) }) // another process came first
			}
			return false
		}
		begun := time.Now()
		k, _ := in.start()
		in.eventually("the other's key", func() bool { return signs(k) == idOf(1) })
		if took := time.Since(begun); took >= firstBackoff {
			t.Errorf("it took %s", took)
		}
		if len(in.data()) != 1 {
			t.Errorf("%d keys", len(in.data()))
		}
	})
}

func TestWhatIsLostIsPutBack(t *testing.T) {
	first, second := name(-2*time.Hour), name(-time.Hour)
	whole := map[string][]byte{first: keyOf(1), second: keyOf(2)}
	cases := map[string]struct{ after, want map[string][]byte }{
		"emptied":              {map[string][]byte{}, whole},
		"one entry gone":       {map[string][]byte{second: keyOf(2)}, whole},
		"one entry damaged":    {map[string][]byte{first: []byte("x"), second: keyOf(2)}, whole},
		"all damaged":          {map[string][]byte{first: []byte("x"), second: []byte("y")}, whole},
		"others' entries stay": {map[string][]byte{"note": []byte("x")}, map[string][]byte{first: keyOf(1), second: keyOf(2), "note": []byte("x")}},
		"replaced by a new one": {
			map[string][]byte{name(0): keyOf(3)}, map[string][]byte{first: keyOf(1), second: keyOf(2), name(0): keyOf(3)}},
		"another under its name": {
			map[string][]byte{first: keyOf(1), second: keyOf(3)},
			map[string][]byte{first: keyOf(1), second: keyOf(3), name(-time.Hour - time.Second): keyOf(2)}},
		"renamed": {map[string][]byte{first: keyOf(1), name(0): keyOf(2)}, map[string][]byte{first: keyOf(1), name(0): keyOf(2)}},
		"retired": {map[string][]byte{first: {}, second: keyOf(2)}, map[string][]byte{first: {}, second: keyOf(2)}},
	}
	for what, c := range cases {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in := newInstallation(t, whole)
				k, _ := in.start()
				in.eventually("a ring", func() bool { return signs(k) == idOf(2) })
				in.store(c.after)
				in.hasData(what, c.want)
				in.eventually("the first key verifies unless it is retired", func() bool { return verifies(k, idOf(1)) == (what != "retired") })
				if !verifies(k, idOf(2)) {
					t.Error("the second key is lost")
				}
			})
		})
	}
}

func TestRetiringTheOnlyKeyMakesAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newInstallation(t, map[string][]byte{name(-time.Hour): keyOf(1)})
		k, _ := in.start()
		in.eventually("a ring", k.HasSynced)
		in.store(map[string][]byte{name(-time.Hour): {}})
		in.eventually("another key", func() bool { return k.Ring() != nil && !verifies(k, idOf(1)) && len(in.data()) == 2 })
	})
}

func TestNothingSignsWhileTheKeyCannotBePutBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newInstallation(t, map[string][]byte{name(-time.Hour): keyOf(1)})
		k, _ := in.start()
		in.eventually("a ring", k.HasSynced)
		in.Refuse("POST", fakeapi.ErrForbidden) // its namespace is being deleted
		in.Delete("secrets", namespace, secretName)
		in.eventually("no ring", func() bool { return k.Ring() == nil })
		in.Refuse("POST", nil)
		in.eventually("the same key", func() bool { return signs(k) == idOf(1) })
		in.hasData("the same entry", map[string][]byte{name(-time.Hour): keyOf(1)})
	})
}

func TestOutageOfTheAPIServerKeepsTheRing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newInstallation(t, map[string][]byte{name(-time.Hour): keyOf(1)})
		k, _ := in.start()
		in.eventually("a ring", k.HasSynced)
		in.Refuse("GET", errAway)
		in.eventually("the outage is noticed", func() bool {
			time.Sleep(recheck)
			return strings.Contains(in.logged.String(), "ServiceUnavailable")
		})
		if signs(k) != idOf(1) {
			t.Error("the ring is gone")
		}
	})
}

func TestRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newInstallation(t, map[string][]byte{name(-time.Hour): keyOf(1)})
		k := in.keyring()
		var changes atomic.Int32
		k.OnChange(func() { changes.Add(1) })
		ctx, cancel := context.WithCancel(in.ctx)
		var running sync.WaitGroup
		running.Go(func() { _ = k.Run(ctx) })
		defer running.Wait()
		defer cancel()
		in.eventually("a ring", k.HasSynced)

		added := time.Now()
		in.store(map[string][]byte{name(-time.Hour): keyOf(1), added.Format(nameFormat): keyOf(2), "broken": []byte("x")})
		in.eventually("the new key verifies", func() bool { return verifies(k, idOf(2)) })
		if signs(k) != idOf(1) {
			t.Error("the new key signs before its grace has passed")
		}
		for signs(k) == idOf(1) {
			if time.Since(added) > grace+10*time.Second {
				t.Fatal("the new key never signs")
			}
			time.Sleep(time.Second)
		}
		if early := added.Truncate(time.Second).Add(grace); time.Now().Before(early) {
			t.Errorf("the new key signs from %s on, want %s", time.Now(), early)
		}
		if !verifies(k, idOf(1)) || signs(k) != idOf(2) {
			t.Error("the old key no longer verifies, or another signs")
		}
		if changes.Load() != 3 {
			t.Errorf("%d changes were told, want 3", changes.Load())
		}
		if n := strings.Count(in.logged.String(), "are not digest keys"); n != 1 || !strings.Contains(in.logged.String(), "broken") {
			t.Errorf("the unreadable entry was logged %d times", n)
		}
	})
}
