package checksum

import "strings"

// ToProve returns the sources whose content has to be proven before the decision, in the order of the selections. known
// is their cached content, nil if there is none. The sources of beside are read at the same time, and not waited for.
// More known content may lead to more sources.
//
// All sources have to be proven, except for a rolling re-admission by our own account, whose answer the controller
// checks: there it is every source whose stamp would change, or that holds the roll. If none of them has changed in the
// cache, the cache may be behind, and all have to be proven.
func (r *Ring) ToProve(request *Request, facts *Facts, known Contents) (must, beside []Source) {
	a := &admission{*request, *facts}
	wanted := func(*Selection) bool { return true }
	if known != nil && a.RollsByOwnAccount() {
		as := *a
		as.Snapshots = nil // pins change no stamp
		as.Content, as.Fresh = func(source Source) *Content { return known[source] }, true
		review := r.Review(as.Namespace, &as.Policy, as.Selections, as.Held, as.Content)
		if len(review.Untrue) > 0 {
			wanted = review.changes(a.Held, stampAll(r, &as).Records)
		}
	}
	for i := range a.Selections {
		if s := &a.Selections[i]; wanted(s) {
			must = append(must, s.Source)
		} else {
			beside = append(beside, s.Source)
		}
	}
	return must, beside
}

// changes returns whether the stamp of a source would differ from its record, or be removed, or whether the source holds
// the roll.
func (r *Review) changes(held, stamped Records) func(*Selection) bool {
	holds := map[Source]bool{}
	for _, finding := range append(r.Missing[:len(r.Missing):len(r.Missing)], r.Faults...) {
		holds[finding.Source] = true
	}
	return func(s *Selection) bool {
		was, recorded := held.Of(s.Source)
		now, stamps := stamped.Stamps[StampKey(s.Source)]
		return holds[s.Source] || recorded != stamps || was != now
	}
}

// IsOwn reports whether a user is a service account in configstamp's own namespace. An empty
// namespace has none.
func IsOwn(user, namespace string) bool {
	return namespace != "" && strings.HasPrefix(user, "system:serviceaccount:"+namespace+":")
}
