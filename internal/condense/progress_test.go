package condense

import (
	"testing"
	"time"
)

func TestTheMostSilentOneCounts(t *testing.T) {
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	var early, late, never Progress
	early.Made(now)
	late.Made(now.Add(time.Minute))
	for sentence, test := range map[string]struct {
		all  []*Progress
		want time.Time
	}{
		"none":                   {nil, time.Time{}},
		"one":                    {[]*Progress{&late}, now.Add(time.Minute)},
		"the older of two":       {[]*Progress{&late, &early}, now},
		"in any order":           {[]*Progress{&early, &late}, now},
		"one that said nothing":  {[]*Progress{&early, &never}, time.Time{}},
		"and in any order again": {[]*Progress{&never, &early}, time.Time{}},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := Oldest(test.all...); !got.Equal(test.want) {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}
