package throttle

import "time"

const (
	// tolerated is the share of late answers in a window that lowers a limit: one of so
	// many, and two at least.
	tolerated = 8
	// remembered is for how long without an answer what was found out is remembered.
	remembered = time.Minute
)

// limit is a number of permits that follows how things go. Answers are counted in windows
// of as many as there are permits. If one in eight of a window is late, and two at least
// are, there are half as many permits from then on; if none or one is late, there is one
// more. So one alone that is always late changes nothing.
//
// Who is late is a namespace, or a workload of one.
type limit[Who comparable] struct {
	permits, most int
	out           int // under way

	answers, lates int          // of this window
	late           map[Who]bool // who was late in it
	window         int          // counts the decreases
	wasLate        bool         // the last answer
	last           time.Time    // when it came
}

func newLimit[Who comparable](most int) *limit[Who] {
	return &limit[Who]{permits: most, most: most, late: map[Who]bool{}}
}

func (l *limit[Who]) room() bool { return l.out < l.permits }

// tellsNothing reports whether a new limit would be the same.
func (l *limit[Who]) tellsNothing(now time.Time) bool {
	return now.Sub(l.last) > remembered || l.permits == l.most && !l.wasLate && len(l.late) == 0
}

// answered counts an answer to what was begun in a window. Before a decrease there were
// more at once, which tells nothing of now.
func (l *limit[Who]) answered(who Who, window int, late bool, now time.Time) {
	if now.Sub(l.last) > remembered {
		l.permits, l.answers, l.lates = l.most, 0, 0
		clear(l.late)
	}
	l.wasLate, l.last = late, now
	if window != l.window {
		return
	}
	if l.answers++; late {
		l.lates++
		l.late[who] = true
	}
	if l.answers < l.permits {
		return
	}
	switch many := tolerated*l.lates >= l.answers; {
	case many && len(l.late) > 1:
		l.permits = max(l.permits/2, 1)
		l.window++
	case l.lates < l.answers && len(l.late) < 2:
		l.permits = min(l.permits+1, l.most)
	}
	l.answers, l.lates = 0, 0
	clear(l.late)
}
