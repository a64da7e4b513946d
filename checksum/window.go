package checksum

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Window is a time of day, on some days of the week, in one time zone. It is what
// a clock on the wall there shows: where summer time skips an hour, a window in
// that hour does not open that day, and where an hour comes twice it is open
// twice.
type Window struct {
	days [7]bool // by time.Weekday, on which it starts
	// start and end are minutes since midnight; an end that is not after the start
	// is on the next day.
	start, end int
	zone       *time.Location
}

const minutesOfDay = 24 * 60

// parseWindows reads windows such as "Mon-Fri 22:00-04:00 Europe/Berlin",
// separated by ";". Days may be left out: every day.
func (z *zones) parseWindows(text string) ([]Window, error) {
	var windows []Window
	for part := range strings.SplitSeq(text, ";") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		if err := room(len(windows)); err != nil {
			return nil, err
		}
		window, err := z.parseWindow(strings.Fields(part))
		if err != nil {
			return nil, err
		}
		windows = append(windows, window)
	}
	if len(windows) == 0 {
		return nil, errors.New("it names no time")
	}
	return windows, nil
}

func (z *zones) parseWindow(fields []string) (Window, error) {
	days := "Mon-Sun"
	if last := fields[len(fields)-1]; isSpan(last) {
		return Window{}, fmt.Errorf("a time zone is missing after %q: want one such as Europe/Berlin or UTC", last)
	}
	if len(fields) == 3 {
		days, fields = fields[0], fields[1:]
	} else if len(fields) != 2 || !strings.Contains(fields[0], ":") {
		return Window{}, errors.New(`want days, times and zone, such as "Mon-Fri 22:00-04:00 Europe/Berlin"`)
	}
	var w Window
	var err error
	if w.days, err = parseDays(days); err != nil {
		return Window{}, err
	}
	from, to, isSpan := strings.Cut(fields[0], "-")
	if !isSpan {
		return Window{}, fmt.Errorf("%q is not a span of time: want one such as 22:00-04:00", fields[0])
	}
	if w.start, err = parseClock(from); err != nil {
		return Window{}, err
	}
	if w.end, err = parseClock(to); err != nil {
		return Window{}, err
	}
	if w.start == minutesOfDay || w.start == w.end {
		return Window{}, fmt.Errorf("%q is not a span of time: the whole day is 00:00-24:00", fields[0])
	}
	if w.zone, err = z.find(fields[1]); err != nil {
		return Window{}, err
	}
	return w, nil
}

// zones remembers the time zones that were read: a policy is read at each admission,
// and a zone lies in a file. nil remembers nothing.
type zones struct {
	mu    sync.Mutex
	known map[string]*time.Location
}

// mostZones is how many are remembered. There are six hundred, but more ways to write
// them: Europe/./Berlin is one.
const mostZones = 1000

func (z *zones) find(name string) (*time.Location, error) {
	if z == nil {
		return parseZone(name)
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	if zone, ok := z.known[name]; ok {
		return zone, nil
	}
	zone, err := parseZone(name)
	if err == nil && len(z.known) < mostZones {
		z.known[strings.Clone(name)] = zone
	}
	return zone, err
}

// parseZone reads a zone of the tz database. "Local", which the time package takes
// too, names none: it would be another one for each process. (time.Local.String()
// is the word to refuse only where TZ is unset: it is "UTC" in our image.)
func parseZone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, fmt.Errorf("%q is not a time zone: want one such as Europe/Berlin or UTC", name)
	}
	return zone, nil
}

// parseClock reads 00:00 to 24:00.
func parseClock(text string) (minutes int, err error) {
	if text == "24:00" {
		return minutesOfDay, nil
	}
	clock, err := time.Parse("15:04", text)
	if err != nil || len(text) != len("15:04") {
		return 0, fmt.Errorf("%q is not a time of day: want one such as 22:00", text)
	}
	return clock.Hour()*60 + clock.Minute(), nil
}

// isSpan reports whether a text is two times of day.
func isSpan(text string) bool {
	from, to, cut := strings.Cut(text, "-")
	if !cut || !strings.Contains(text, ":") {
		return false // as most zones are
	}
	_, fromErr := parseClock(from)
	_, toErr := parseClock(to)
	return fromErr == nil && toErr == nil
}

// parseDays reads days and spans of days, such as Mon-Wed,Sat.
func parseDays(text string) (days [7]bool, err error) {
	for part := range strings.SplitSeq(text, ",") {
		from, to, isSpan := strings.Cut(part, "-")
		if !isSpan {
			to = from
		}
		first, err := parseDay(from)
		if err != nil {
			return days, err
		}
		last, err := parseDay(to)
		if err != nil {
			return days, err
		}
		for day := first; ; day = (day + 1) % 7 {
			days[day] = true
			if day == last {
				break
			}
		}
	}
	return days, nil
}

func parseDay(text string) (time.Weekday, error) {
	for day := time.Sunday; day <= time.Saturday; day++ {
		if strings.EqualFold(text, day.String()[:3]) {
			return day, nil
		}
	}
	return 0, fmt.Errorf("%q is not a day: want Mon, Tue, Wed, Thu, Fri, Sat or Sun", text)
}

// open reports whether a window is open.
func (w Window) open(now time.Time) bool {
	there := now.In(w.zone)
	minute := there.Hour()*60 + there.Minute()
	today := there.Weekday()
	if w.start < w.end {
		return w.days[today] && w.start <= minute && minute < w.end
	}
	yesterday := (today + 6) % 7
	return (w.days[today] && minute >= w.start) || (w.days[yesterday] && minute < w.end)
}

// next is the first moment after now at which the window opens. Where summer
// time skips the start, it may be up to an hour late.
func (w Window) next(now time.Time) time.Time {
	there := now.In(w.zone)
	for day := range 15 { // a window on one day of the week that summer time skips once
		start := time.Date(there.Year(), there.Month(), there.Day()+day, 0, w.start, 0, 0, w.zone)
		for _, start := range []time.Time{start.Add(-time.Hour), start, start.Add(time.Hour)} {
			if start.After(now) && w.open(start) {
				return start
			}
		}
	}
	return now.Add(time.Hour)
}

// anyOpen reports whether one of some windows is open; with none, it always is.
// Else it says when to look again.
func anyOpen(windows []Window, now time.Time) (open bool, next time.Time) {
	if len(windows) == 0 || slices.ContainsFunc(windows, func(w Window) bool { return w.open(now) }) {
		return true, time.Time{}
	}
	for _, w := range windows {
		if at := w.next(now); next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return false, next
}
