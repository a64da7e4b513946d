package seen

import "cmp"

// Gap is something that an answer would need, and that could not be looked at.
type Gap struct {
	// What was to be read, such as "secrets in namespace shop".
	What string `json:"what"`
	// Why it was not: "forbidden", or what the API server said.
	Why string `json:"why"`
}

// String says both: secrets in namespace shop: forbidden.
func (g Gap) String() string { return g.What + ": " + g.Why }

// Compare orders gaps by what they are about.
func (g Gap) Compare(other Gap) int {
	return cmp.Or(cmp.Compare(g.What, other.What), cmp.Compare(g.Why, other.Why))
}
