package checksum_test

import (
	"testing"
	"time"

	"github.com/configstamp/configstamp/checksum"
)

// windowed is a policy with windows alone.
func windowed(t *testing.T, windows string) checksum.Policy {
	t.Helper()
	policy := checksum.DefaultPolicy().With(onWorkload("window", windows))
	if len(policy.Faults) > 0 {
		t.Fatal(policy.Faults)
	}
	return policy
}

func moment(t *testing.T, zone, text string) time.Time {
	t.Helper()
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	at, err := time.ParseInLocation("2006-01-02 15:04", text, location)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestWindows(t *testing.T) {
	const nights = "Mon-Fri 22:00-04:00 Europe/Berlin"
	for _, c := range []struct {
		about, windows, zone, now string
		next                      string // "": open
	}{
		{"inside", nights, "Europe/Berlin", "2026-11-20 23:00", ""}, // a Friday
		{"the first minute", nights, "Europe/Berlin", "2026-11-20 22:00", ""},
		{"the minute before", nights, "Europe/Berlin", "2026-11-20 21:59", "2026-11-20 22:00"},
		{"the last minute", nights, "Europe/Berlin", "2026-11-20 03:59", ""},
		{"the end", nights, "Europe/Berlin", "2026-11-20 04:00", "2026-11-20 22:00"},
		{"after midnight it is still Friday's", nights, "Europe/Berlin", "2026-11-21 03:00", ""},
		{"Saturday has none", nights, "Europe/Berlin", "2026-11-21 23:00", "2026-11-23 22:00"},
		{"Monday morning would be Sunday's", nights, "Europe/Berlin", "2026-11-23 03:00", "2026-11-23 22:00"},
		{"told elsewhere", nights, "America/New_York", "2026-11-20 16:30", ""},
		{"every day", "12:00-13:00 UTC", "UTC", "2026-11-22 12:30", ""},
		{"a whole day", "Sun 00:00-24:00 UTC", "UTC", "2026-11-22 23:59", ""},
		{"a span of days over the week's end", "Sat-Mon 10:00-11:00 UTC", "UTC", "2026-11-23 10:30", ""},
		{"listed days", "Mon,Wed-Thu 10:00-11:00 UTC", "UTC", "2026-11-24 10:30", "2026-11-25 10:00"},
		{"the second of two", "Mon 10:00-11:00 UTC; Tue 10:00-11:00 UTC", "UTC", "2026-11-24 10:30", ""},
		{"the nearest of two", "Mon 10:00-11:00 UTC; Tue 10:00-11:00 UTC", "UTC", "2026-11-24 11:30", "2026-11-30 10:00"},
		// 2026-03-29: 02:00 is followed by 03:00. 2026-10-25: 02:00-03:00 comes twice.
		{"what summer time skips does not open", "02:00-03:00 Europe/Berlin", "Europe/Berlin", "2026-03-29 01:59", "2026-03-30 02:00"},
		{"what begins in the skipped hour opens after it", "02:30-05:00 Europe/Berlin", "Europe/Berlin", "2026-03-29 03:00", ""},
		{"what ends in the skipped hour", "01:00-02:30 Europe/Berlin", "Europe/Berlin", "2026-03-29 03:00", "2026-03-30 01:00"},
		{"a window on a day of 23 hours", "00:00-06:00 Europe/Berlin", "Europe/Berlin", "2026-03-29 05:59", ""},
	} {
		t.Run(c.about, func(t *testing.T) {
			policy := windowed(t, c.windows)
			now := moment(t, c.zone, c.now)
			hold, held := policy.HoldAt(now, time.Time{})
			if held != (c.next != "") {
				t.Fatalf("held: %v, %v", held, hold)
			}
			if held && !hold.Until.Equal(moment(t, c.zone, c.next)) {
				t.Errorf("opens %s, want %s", hold.Until.In(now.Location()), c.next)
			}
			if held {
				if _, still := policy.HoldAt(hold.Until, time.Time{}); still {
					t.Error("it is not open then")
				}
			}
		})
	}
}

func TestAnHourThatComesTwiceIsOpenTwice(t *testing.T) {
	policy := windowed(t, "02:00-03:00 Europe/Berlin")
	first := moment(t, "UTC", "2026-10-25 00:30") // 02:30 summer time
	for at, open := range map[time.Time]bool{first.Add(-time.Hour): false, first: true, first.Add(time.Hour): true, first.Add(2 * time.Hour): false} {
		if _, held := policy.HoldAt(at, time.Time{}); held == open {
			t.Errorf("%s: open %v", at, !held)
		}
	}
}

// Whatever the window, the moment that is named opens it, and is not more than an
// hour later than it must be.
func TestTheNextOpeningIsTheFirst(t *testing.T) {
	for _, windows := range []string{"Mon-Fri 22:00-04:00 Europe/Berlin", "02:15-02:45 Europe/Berlin", "Sun 02:00-03:00 America/New_York", "23:30-00:30 Australia/Lord_Howe", "Wed 00:00-24:00 Asia/Kathmandu; Sat 23:59-00:01 UTC"} {
		policy := windowed(t, windows)
		var opened time.Time
		for now := moment(t, "UTC", "2026-11-08 00:00"); now.After(moment(t, "UTC", "2026-03-01 00:00")); now = now.Add(-7 * time.Minute) {
			hold, held := policy.HoldAt(now, time.Time{})
			if !held {
				opened = now
				continue
			}
			if !opened.IsZero() && hold.Until.After(opened.Add(time.Hour)) {
				t.Fatalf("%s at %s: opens %s, but it was open at %s", windows, now, hold.Until, opened)
			}
		}
	}
}
