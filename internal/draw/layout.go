package draw

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// part is what hangs together: sources on the left, workloads on the right. Rows are
// counted from the top of the picture.
type part struct {
	sources, workloads []*node
	rows               float64
}

// block is a namespace with its parts, in columns.
type block struct {
	namespace string
	parts     []*part
	top, rows float64
}

// Rows between things.
const (
	betweenParts  = 0.6
	betweenBlocks = 1.0
	blockHead     = 1.2 // the name of the namespace
	blockFoot     = 0.4
)

// rowsOfOneColumn is how many rows a picture has at least before it has two columns, four
// times as many for three, and so on: it stays about as wide as it is high.
const rowsOfOneColumn = 50

// layOut gives each node its row and column, and returns the namespaces, in order of their
// names, and how large the picture is.
func (p *picture) layOut() (blocks []*block, columns int, rows float64) {
	by := map[string]*block{}
	for _, one := range p.parts() {
		namespace := one.workloads[0].group
		if by[namespace] == nil {
			by[namespace] = &block{namespace: namespace}
			blocks = append(blocks, by[namespace])
		}
		by[namespace].parts = append(by[namespace].parts, one)
		rows += one.rows
	}
	columns = max(1, int(math.Sqrt(rows/rowsOfOneColumn)+0.5))
	slices.SortFunc(blocks, func(a, b *block) int { return strings.Compare(a.namespace, b.namespace) })
	rows = 0
	for _, b := range blocks {
		slices.SortStableFunc(b.parts, compareParts)
		b.top = rows
		b.rows = blockHead + b.fill(columns) + blockFoot
		rows += b.rows + betweenBlocks
	}
	return blocks, columns, max(rows-betweenBlocks, 0)
}

// fill puts parts into columns, one below the other, and returns the rows of the longest.
func (b *block) fill(columns int) (rows float64) {
	all, most := 0.0, 0.0
	for i, one := range b.parts {
		all, most = all+b.gap(i)+one.rows, max(most, one.rows)
	}
	enough := max(all/float64(columns), most)
	at, column := 0.0, 0
	for i, one := range b.parts {
		gap := b.gap(i)
		if at > 0 && at+gap+one.rows > enough+betweenParts && column+1 < columns {
			at, gap, column = 0, 0, column+1
		}
		one.arrange(b.top+blockHead+at+gap, column)
		at += gap + one.rows
		rows = max(rows, at)
	}
	return rows
}

// gap is what stands before a part: nothing between two pairs of one source and its only
// user.
func (b *block) gap(i int) float64 {
	if i == 0 || b.parts[i-1].rows == 1 && b.parts[i].rows == 1 {
		return 0
	}
	return betweenParts
}

// parts finds what hangs together. A source without users is in none.
func (p *picture) parts() []*part {
	of := map[*node]*part{}
	var all []*part
	var collect func(n *node, into *part)
	collect = func(n *node, into *part) {
		if of[n] != nil {
			return
		}
		of[n] = into
		for _, l := range n.links {
			collect(l.source, into)
			collect(l.workload, into)
		}
	}
	for _, w := range p.workloads {
		if of[w] == nil {
			one := &part{}
			all = append(all, one)
			collect(w, one)
		}
		of[w].workloads = append(of[w].workloads, w)
	}
	for _, s := range p.sources {
		if one := of[s]; one != nil {
			one.sources = append(one.sources, s)
		}
	}
	for _, one := range all {
		one.rows = float64(max(len(one.sources), len(one.workloads)))
	}
	return all
}

// compareParts puts what people look for first: the most urgent state, then the most
// workloads, then names.
func compareParts(a, b *part) int {
	worst := func(one *part) int {
		first := slices.MinFunc(one.workloads, func(a, b *node) int { return cmp.Compare(urgency(a.state), urgency(b.state)) })
		return urgency(first.state)
	}
	return cmp.Or(cmp.Compare(worst(a), worst(b)), cmp.Compare(len(b.workloads), len(a.workloads)), strings.Compare(a.workloads[0].name, b.workloads[0].name))
}

// sweeps is how often each side is put in the order of the other.
const sweeps = 12

// arrange orders both sides so that few lines cross: each node goes to the mean place of
// those that it is linked to, again and again. Then the longer side has a row for each of
// its nodes, and the nodes of the other stand as near as they can to their mean.
func (one *part) arrange(top float64, column int) {
	byName := func(a, b *node) int { return strings.Compare(a.name, b.name) }
	slices.SortFunc(one.sources, byName)
	slices.SortFunc(one.workloads, byName)
	number := func(side []*node) {
		for i, n := range side {
			n.row = float64(i) * one.rows / float64(len(side))
		}
	}
	number(one.sources)
	for range sweeps {
		for _, side := range [][]*node{one.workloads, one.sources} {
			slices.SortStableFunc(side, func(a, b *node) int { return cmp.Compare(a.mean(), b.mean()) })
			number(side)
		}
	}
	longer, other := one.workloads, one.sources
	if len(other) > len(longer) {
		longer, other = other, longer
	}
	for i, n := range longer {
		n.row = top + float64(i)
	}
	settle(other, top, one.rows)
	for _, n := range slices.Concat(one.sources, one.workloads) {
		n.column = column
	}
}

// mean is the mean row of what a node is linked to.
func (n *node) mean() float64 {
	sum := 0.0
	for _, l := range n.links {
		if other := l.source; other != n {
			sum += other.row
		} else {
			sum += l.workload.row
		}
	}
	return sum / math.Max(1, float64(len(n.links)))
}

// settle puts nodes, in their order, near their means, a row apart.
func settle(nodes []*node, top, rows float64) {
	next := top
	for _, n := range nodes {
		n.row = math.Max(n.mean(), next)
		next = n.row + 1
	}
	last := top + rows - 1
	for i := len(nodes) - 1; i >= 0 && nodes[i].row > last; i-- {
		nodes[i].row = last
		last--
	}
}
