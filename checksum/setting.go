package checksum

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// settingPrefix begins the annotations that set a policy.
const settingPrefix = "configstamp.dev/"

// Setting is one row of the table of settings, from which they are read and the
// documentation is made.
type Setting struct {
	// Value describes the values, Meaning what the setting does, On the objects that can have it.
	Value, Meaning, On string

	key         string
	set         func(*Policy, string) error
	setOnSource func(*SourcePolicy, string) error
}

// Key is the setting's annotation.
func (s *Setting) Key() string { return s.key }

// Name is its flag.
func (s *Setting) Name() string { return s.key[len(settingPrefix):] }

const settingCount = 15

// settings is the table. Nothing changes it; a function would make it anew at each
// admission.
var settings = [settingCount]Setting{ //nolint:gochecknoglobals // see above
	{
		key: OnlyAnnotation, On: onObjects,
		Value:   "list such as `configmap/web-message,secret/db-*` (globs)",
		Meaning: "only these sources count",
		set:     func(p *Policy, text string) error { return assign(&p.Only, text, parseSourcePatterns) },
	},
	{
		key: settingPrefix + "ignore", On: onObjects + ", source",
		Value:       "the same; on a source `true` or `false`",
		Meaning:     "all but these; on a source: it never counts",
		set:         func(p *Policy, text string) error { return assign(&p.Ignore, text, parseSourcePatterns) },
		setOnSource: func(p *SourcePolicy, text string) error { return assign(&p.Ignore, text, parseTruth) },
	},
	{
		key: settingPrefix + "ignore-keys", On: "source",
		Value:       "list of keys such as `build-date,*.md` (globs)",
		Meaning:     "these keys never count",
		setOnSource: func(p *SourcePolicy, text string) error { return assign(&p.IgnoreKeys, text, parseKeyPatterns) },
	},
	{
		key: alsoSetting, On: onObjects,
		Value:   "list such as `configmap/routes,secret/api`, no globs",
		Meaning: "these count too, with all keys, as optional: sources that the app reads through the API",
		set:     func(p *Policy, text string) error { return assign(&p.Also, text, parseSources) },
	},
	{
		key: settingPrefix + "restart-on", On: onFlagToo,
		Value:   "`all` (default), `startup`, `everything`",
		Meaning: "which uses restart: what containers read at their start and while they run; only at their start; or also what nodes read",
		set:     func(p *Policy, text string) error { return assign(&p.Uses, text, parseUses) },
	},
	{
		key: settingPrefix + "mode", On: onFlagToo,
		Value:   "`restart` (default), `observe`",
		Meaning: "`observe`: an event says what would roll, and nothing rolls",
		set:     func(p *Policy, text string) error { return assign(&p.Observe, text, either("restart", "observe")) },
	},
	{
		key: PauseAnnotation, On: onFlagToo,
		Value:   "`true`, `false` (overrides the Namespace), or until a time such as `2027-01-02T06:00:00Z` (RFC 3339); a past time counts as `false`",
		Meaning: "hold rollouts; changes during the pause roll once when it ends",
		set:     func(p *Policy, text string) error { return assign(&p.Pause, text, parsePause) },
	},
	{
		key: settingPrefix + "window", On: onObjects,
		Value:   "such as `Mon-Fri 22:00-04:00 Europe/Berlin`, several separated by `;`",
		Meaning: "roll only then; its days are those on which it starts",
		set:     func(p *Policy, text string) error { return assign(&p.Windows, text, p.zones.parseWindows) },
	},
	{
		key: settingPrefix + "min-interval", On: onObjects,
		Value:   "duration such as `30m`; `0s` is none",
		Meaning: "roll no sooner than this after the newest revision became current",
		set:     func(p *Policy, text string) error { return assign(&p.MinInterval, text, parseInterval) },
	},
	{
		key: settingPrefix + "order", On: onObjects,
		Value:   "whole number such as `10`, lower first",
		Meaning: "place within a change; workloads without it come last",
		set:     func(p *Policy, text string) error { return assign(&p.Order, text, parseOrder) },
	},
	{
		key: settingPrefix + "soak", On: onObjects,
		Value:   "duration such as `5m`, up to an hour; `0s` is none",
		Meaning: "in place of `--soak` and `--first-soak`; at least minReadySeconds",
		set:     func(p *Policy, text string) error { return assign(&p.Soak, text, parseSoak) },
	},
	{
		key: settingPrefix + "resume", On: "source",
		Value:       "time such as `2027-01-02T06:00:00Z` (RFC 3339)",
		Meaning:     "a halted change continues if its failed rollout began before this time; a time more than a minute ahead releases nothing",
		setOnSource: func(p *SourcePolicy, text string) error { return assign(&p.Resume, text, parseTime) },
	},
	{
		key: settingPrefix + "adopt", On: onObjects,
		Value:   "`baseline` (default), `restart`",
		Meaning: "a workload without stamps: record the present content, or roll it",
		set: func(p *Policy, text string) error {
			return assign(&p.RestartUnstamped, text, either("baseline", "restart"))
		},
	},
	{
		key: PinAnnotation, On: onFlagToo + ", source",
		Value:   "`true`, `false` (overrides the Namespace); on a source `false`",
		Meaning: "pods of Deployments, StatefulSets, DaemonSets and Argo Rollouts keep the content of ConfigMaps that they were rolled out with; on a source `false`: it is never pinned",
		set:     func(p *Policy, text string) error { return assign(&p.Pin, text, parseTruth) },
		setOnSource: func(p *SourcePolicy, text string) error {
			pinned := true
			err := assign(&pinned, text, parseTruth)
			p.Unpinned = err != nil || !pinned
			return err
		},
	},
	{
		key: settingPrefix + "on-failure", On: onObjects,
		Value:   "`hold` (default), `return`",
		Meaning: "`return`: a workload with pins that has failed with a change goes back to its former content; the change stays halted",
		set:     func(p *Policy, text string) error { return assign(&p.Return, text, either("hold", "return")) },
	},
}

// Settings that other packages name.
const (
	// PauseAnnotation holds rollouts, on a workload or its Namespace.
	PauseAnnotation = settingPrefix + "pause"
	// ResumeAnnotation releases what has halted, on a source.
	ResumeAnnotation = settingPrefix + "resume"
	// OnlyAnnotation lists the sources that count.
	OnlyAnnotation = settingPrefix + "only"
	// PinAnnotation pins pods, on a workload or its Namespace.
	PinAnnotation = settingPrefix + "pin"
)

// Settings that other rules name.
const (
	alsoSetting = settingPrefix + "also"
)

// Where a setting can stand: on objects, and as a flag as well.
const (
	onObjects = "workload, Namespace"
	onFlagToo = onObjects + ", flag"
)

// Settings lists the table, for flags and documentation.
func Settings() []Setting { return append([]Setting(nil), settings[:]...) }

// OnFlag reports whether the setting has a flag, for the whole cluster.
func (s *Setting) OnFlag() bool { return strings.HasPrefix(s.On, onFlagToo) }

// Fault is a setting that cannot be read. It is never guessed at.
type Fault struct {
	Origin Origin
	// Key is the annotation, Value what stands there, Want what is wrong with it.
	Key, Value, Want string
}

// Error returns what is wrong, and where.
func (f Fault) Error() string {
	where := f.Key
	switch f.Origin {
	case OfNamespace:
		where += " on the Namespace"
	case OfFlag:
		where = "--" + strings.TrimPrefix(f.Key, settingPrefix)
	case OfWorkload, OfSource:
	}
	return fmt.Sprintf("%s: %q: %s", where, shortened(f.Value), cut(f.Want, mostOfWant))
}

// shortened cuts a text of a user, so that it fits into a warning.
func shortened(text string) string { return cut(text, 80) }

// mostOfWant bounds the text about what is wrong, in bytes: it may quote the value.
const mostOfWant = 400

func cut(text string, enough int) string {
	if len(text) <= enough {
		return text
	}
	return strings.ToValidUTF8(text[:enough], "") + "…"
}

// assign reads a value, and sets it only when that can be read.
func assign[T any](to *T, text string, parse func(string) (T, error)) error {
	value, err := parse(strings.TrimSpace(text))
	if err == nil {
		*to = value
	}
	return err
}

// either reads one of two words, and reports whether it is the second.
func either(first, second string) func(string) (bool, error) {
	return func(text string) (bool, error) {
		if text != first && text != second {
			return false, fmt.Errorf("want %s or %s", first, second)
		}
		return text == second, nil
	}
}

func parseTruth(text string) (bool, error) { return either("false", "true")(text) }

func parseUses(text string) ([]Use, error) {
	switch text {
	case "startup":
		return []Use{Startup}, nil
	case "all":
		return []Use{Startup, Live}, nil
	case "everything":
		return []Use{Startup, Live, Node}, nil
	}
	return nil, errors.New("want all, startup or everything")
}

func parsePause(text string) (Pause, error) {
	switch text {
	case "true":
		return Pause{On: true}, nil
	case "false":
		return Pause{}, nil
	}
	until, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return Pause{}, errors.New("want true, false or a time until which, such as 2027-01-02T06:00:00Z")
	}
	return Pause{On: true, Until: until}, nil
}

func parseOrder(text string) (Order, error) {
	place, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return Order{}, errors.New("want a whole number such as 10")
	}
	return Order{Place: int(place), Given: true}, nil
}

func parseTime(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, errors.New("want a time such as 2027-01-02T06:00:00Z")
	}
	return at, nil
}

func parseInterval(text string) (time.Duration, error) {
	interval, err := time.ParseDuration(text)
	if err != nil || interval < 0 {
		return 0, errors.New("want a duration such as 30m or 1h30m")
	}
	return interval, nil
}

// longestSoak bounds the setting soak: a change waits for it.
const longestSoak = time.Hour

func parseSoak(text string) (Soak, error) {
	soak, err := time.ParseDuration(text)
	if err != nil || soak < 0 || soak > longestSoak {
		return Soak{}, errors.New("want a duration such as 30s or 5m, an hour at most")
	}
	return Soak{For: soak, Given: true}, nil
}
