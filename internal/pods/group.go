package pods

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/podtruth"
	"github.com/configstamp/configstamp/internal/workload"
)

// group is what pods of one template have in common. It never changes, but for proofs.
type group struct {
	namespace  string
	makers     []workload.Ref
	references []checksum.Reference // joined
	stamps     map[string]string
	sources    []checksum.Source // those that containers use
	containers []string          // those that use any
	uses       []podtruth.Use    // places in sources and containers

	proofs map[string]*proof // under the lock of the room
}

// proof says, of each use of a group, by a value as a stamp has it, which content the
// container is proven to have; "" is not proven.
type proof struct{ values []string }

// kept is all that is kept of one pod.
type kept struct {
	group   *group
	proof   *proof   // nil: nothing is proven
	first   [2]start // of the first containers; most pods have no more that use a source
	more    *[]start // nil: there are no more
	created uint32   // Unix seconds
	lost    bool
}

// start is when a container started, in Unix seconds, 0 when it does not run.
type start uint64

func startOf(c workload.RunningContainer) start {
	if c.Started.IsZero() {
		return 0
	}
	s := start(c.Started.Unix()) << 1 //nolint:gosec // it is after 1970
	if c.Restarted {
		s |= 1
	}
	return s
}

func (s start) container(name string) podtruth.Container {
	c := podtruth.Container{Name: name, Restarted: s&1 == 1}
	if s != 0 {
		c.Started = time.Unix(int64(s>>1), 0)
	}
	return c
}

// start is that of a container of the group.
func (k *kept) start(container int) start {
	if container < len(k.first) {
		return k.first[container]
	}
	return (*k.more)[container-len(k.first)]
}

// sameStarts reports whether no container has started since.
func (k *kept) sameStarts(other *kept) bool {
	if k.more == nil || other.more == nil {
		return k.first == other.first && k.more == other.more
	}
	return k.first == other.first && slices.Equal(*k.more, *other.more)
}

// groups gives equal groups one place in memory.
type groups struct {
	mu   sync.Mutex
	made map[[16]byte]*group
}

// intern is the group that was made first of those that are equal.
func (g *groups) intern(made *group) *group {
	key := made.key()
	g.mu.Lock()
	defer g.mu.Unlock()
	if known := g.made[key]; known != nil {
		return known
	}
	if g.made == nil {
		g.made = map[[16]byte]*group{}
	}
	g.made[key] = made
	return made
}

// sweep forgets the groups that no pod is in. One that is made again meanwhile lies in memory
// twice, and nothing else comes of it.
func (g *groups) sweep(used map[*group]bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.DeleteFunc(g.made, func(_ [16]byte, made *group) bool { return !used[made] })
}

func (g *groups) len() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.made)
}

// key tells groups apart.
func (g *group) key() (key [16]byte) {
	hash := sha256.New()
	field := func(text string) {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(text)))
		hash.Write(length[:])
		hash.Write([]byte(text))
	}
	field(g.namespace)
	for _, maker := range g.makers {
		field(maker.Kind.String())
		field(maker.Name)
	}
	field("stamps")
	for _, name := range slices.Sorted(maps.Keys(g.stamps)) {
		field(name)
		field(g.stamps[name])
	}
	field(fmt.Sprint(g.containers, g.sources, g.uses))
	for i := range g.references {
		r := &g.references[i]
		field(fmt.Sprintf("%s %s %t %t %t %q %q", r.Source, r.Use, r.All, r.Optional, r.Env, r.Keys, r.RequiredKeys))
	}
	return [16]byte(hash.Sum(nil))
}
