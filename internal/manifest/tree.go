package manifest

// form is what a node is.
type form int

const (
	scalar form = iota
	null
	mapping
	list
	alias
)

// node is one value of a document: where it stands, and how it is written.
type node struct {
	form form
	// at is its first byte in the document; of an anchored or tagged one, that of the
	// anchor or tag.
	at int
	// flow tells that a mapping or a list is in brackets.
	flow bool
	// quote is the quote around a scalar: ' or ", 0 when there is none, and '|' for
	// block scalars.
	quote byte
	// text is what a scalar without quotes, or an alias, says.
	text string
	// decorated tells of an anchor or a tag.
	decorated bool
	members   []member
	items     []*node
	target    *node // of an alias
}

// member is one key of a mapping with its value.
type member struct{ key, value *node }

// follow is the node itself, or what an alias stands for.
func (n *node) follow() *node {
	for steps := 0; n != nil && n.form == alias && steps < deepest; steps++ {
		n = n.target
	}
	return n
}

// deepest bounds how far aliases and merges are followed: they may go round in circles.
const deepest = 16

// own finds a key that a mapping has itself; of several the last counts.
func (n *node) own(key string) (member, bool) {
	for i := len(n.members) - 1; i >= 0; i-- {
		if k := n.members[i].key; k.form == scalar && k.text == key {
			return n.members[i], true
		}
	}
	return member{}, false
}

// find finds a key that a mapping has itself, or by a merge (<<).
func (n *node) find(key string) (member, bool) { return n.findWithin(key, deepest) }

func (n *node) findWithin(key string, depth int) (member, bool) {
	if n == nil || n.form != mapping || depth == 0 {
		return member{}, false
	}
	if found, ok := n.own(key); ok {
		return found, true
	}
	for _, m := range n.members {
		if m.key.text != "<<" || m.key.quote != 0 {
			continue
		}
		merged := []*node{m.value}
		if m.value.form == list {
			merged = m.value.items
		}
		for _, one := range merged {
			if found, ok := one.follow().findWithin(key, depth-1); ok {
				return found, true
			}
		}
	}
	return member{}, false
}
