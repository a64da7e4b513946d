package rights

import "slices"

// Exception is a kind of request that a test provokes on purpose, or has allowed
// by a role of its own. An empty field means any.
type Exception struct {
	Verb, Group, Resource, Namespace, Name string
	// Why says which test, and what for.
	Why string
}

func (e Exception) means(q Request) bool {
	is := func(wanted, got string) bool { return wanted == "" || wanted == got }
	return is(e.Verb, q.Verb) && is(e.Group, q.Group) && is(e.Resource, q.Resource) && is(e.Namespace, q.Namespace) && is(e.Name, q.Name)
}

// Verdict is what roles and requests say of each other.
type Verdict struct {
	// Denied were refused by all roles, Beyond allowed by none of these; both without repetitions.
	Denied, Beyond []Request
	// Unused are rights that no request needed.
	Unused []Right
	// Idle are exceptions that meant no request.
	Idle []Exception
}

// Judge compares. A request uses the narrowest of the rights that give it, so a
// wide one is not needed for what a narrow one gives.
func Judge(rights []Right, requests []Request, exceptions []Exception) Verdict {
	used := make([]bool, len(rights))
	needed := make([]bool, len(exceptions))
	var v Verdict
	add := func(to *[]Request, q Request) {
		if !slices.Contains(*to, q) {
			*to = append(*to, q)
		}
	}
	for _, q := range requests {
		by := narrowest(rights, q)
		if !q.Forbidden && by >= 0 {
			used[by] = true
			continue
		}
		if i := slices.IndexFunc(exceptions, func(e Exception) bool { return e.means(q) }); i >= 0 {
			needed[i] = true
			continue
		}
		if q.Forbidden {
			add(&v.Denied, q)
		} else {
			add(&v.Beyond, q)
		}
	}
	for i, right := range rights {
		if !used[i] {
			v.Unused = append(v.Unused, right)
		}
	}
	for i, exception := range exceptions {
		if !needed[i] {
			v.Idle = append(v.Idle, exception)
		}
	}
	return v
}

func narrowest(rights []Right, q Request) int {
	best := -1
	for i, right := range rights {
		if right.gives(q) && (best < 0 || right.narrower(rights[best])) {
			best = i
		}
	}
	return best
}
