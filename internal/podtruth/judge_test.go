package podtruth

import (
	"testing"
	"time"

	"github.com/configstamp/configstamp/checksum"
)

var began = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }

// story is one container of one pod that uses one source.
type story struct {
	created, started int
	restarted, lost  bool
	how              How
	stamp            Match
	proven           Match
	source           Source
}

func (c story) pod() *Pod {
	source := c.source
	source.Source, source.Stamp = checksum.Source{Kind: checksum.ConfigMap, Name: "a"}, c.stamp
	pod := &Pod{
		Created: at(c.created), Lost: c.lost,
		Containers: []Container{{Name: "web", Started: at(c.started), Restarted: c.restarted}},
		Sources:    []Source{source}, Uses: []Use{{How: c.how}}, Proven: []Match{c.proven},
	}
	if c.started == 0 {
		pod.Containers[0].Started = time.Time{}
	}
	return pod
}

// One container, one source: each rule of docs/pods.md once, just within and just without.
// The moment is 1,000 s.
func TestJudge(t *testing.T) {
	written := func(seconds int) Source { return Source{Written: at(seconds)} }
	removable := func(seconds int) Source { return Source{Written: at(seconds), Removable: true} }
	stamped := func(seconds int, s Source) Source { s.Stamped = at(seconds); return s }
	seen := func(since, still, written int) Source {
		s := Source{Since: at(since), Still: at(still), Removable: true}
		if written != 0 {
			s.Written = at(written)
		}
		return s
	}
	for sentence, c := range map[string]struct {
		story
		want State
		why  Why
	}{
		"a usual roll":                          {story{created: 102, started: 103, stamp: Same, source: written(100)}, Current, StampTrue},
		"a roll a second after the edit":        {story{created: 101, started: 103, stamp: Same, source: written(100)}, Unknown, StartedAtOnce},
		"one whose image was pulled for long":   {story{created: 100, started: 105, stamp: Same, source: written(100)}, Current, StampTrue},
		"halted, and started a minute later":    {story{created: 50, started: 164, restarted: true, stamp: Differs, source: written(100)}, Current, StartedAfter},
		"halted, and started within the minute": {story{created: 50, started: 163, restarted: true, stamp: Differs, source: written(100)}, Unknown, StartedSoon},
		"held, a new pod of the old template":   {story{created: 161, started: 162, stamp: Differs, source: written(100)}, Current, StartedAfter},
		"held, a new pod within the minute":     {story{created: 160, started: 162, stamp: Differs, source: written(100)}, Unknown, StartedSoon},
		"held, and never restarted":             {story{created: 50, started: 96, stamp: Differs, source: written(100)}, Old, StartedBefore},
		"held, started about when it was":       {story{created: 50, started: 97, stamp: Differs, source: written(100)}, Unknown, StartedSoon},
		"held, restarted before":                {story{created: 20, started: 30, restarted: true, stamp: Differs, source: written(100)}, Unknown, RestartedUnseen},
		"an annotation alone":                   {story{created: 50, started: 52, stamp: Same, source: written(100)}, Unknown, WrittenSince},
		"true, but restarted in the minute":     {story{created: 50, started: 163, restarted: true, stamp: Same, source: written(100)}, Unknown, StartedSoon},
		"true, and restarted later":             {story{created: 50, started: 164, restarted: true, stamp: Same, source: written(100)}, Current, StartedAfter},
		"a file, restarted after two minutes":   {story{created: 50, started: 253, restarted: true, how: File, stamp: Same, source: written(100)}, Unknown, StartedSoon},
		"a file, restarted later":               {story{created: 50, started: 254, restarted: true, how: File, stamp: Same, source: written(100)}, Current, StartedAfter},
		"no stamp, by time":                     {story{created: 161, started: 162, source: written(100)}, Current, StartedAfter},
		"no stamp, before the edit":             {story{created: 50, started: 52, source: written(100)}, Unknown, Unstamped},
		"nobody knows when":                     {story{created: 50, started: 52, stamp: Same}, Unknown, Undated},
		"optional, and was never there":         {story{created: 50, started: 52, stamp: Same, source: Source{Unwritten: true}}, Current, StampTrue},
		"missing":                               {story{created: 50, started: 52, source: Source{Missing: true, Written: at(10)}}, Unknown, SourceMissing},
		"it does not run":                       {story{created: 50, stamp: Same, source: written(10)}, Unknown, NotRunning},
		"its node does not answer":              {story{created: 50, started: 52, lost: true, stamp: Same, source: written(10)}, Unknown, NodeSilent},

		"all keys, a usual roll":             {story{created: 102, started: 103, stamp: Same, source: removable(100)}, Current, StampTrue},
		"all keys, true and restarted":       {story{created: 102, started: 300, restarted: true, stamp: Same, source: removable(100)}, Unknown, RestartedUnseen},
		"all keys, a stamp of other content": {story{created: 200, started: 202, stamp: Differs, source: removable(100)}, Unknown, RemovedUnseen},

		"all keys, not written since stamped":         {story{created: 300, started: 400, restarted: true, stamp: Same, source: stamped(102, removable(100))}, Unknown, RestartedUnseen},
		"all keys, not written since, first start":    {story{created: 300, started: 400, stamp: Same, source: stamped(102, removable(100))}, Current, StampTrue},
		"all keys, written just before it was":        {story{created: 300, started: 400, restarted: true, stamp: Same, source: stamped(101, removable(100))}, Unknown, RestartedUnseen},
		"all keys, stamped when it was made":          {story{created: 100, started: 101, stamp: Same, source: stamped(100, Source{Written: at(100), Made: at(100), Removable: true})}, Current, StampTrue},
		"all keys, stamped before it was made anew":   {story{created: 104, started: 105, stamp: Same, source: stamped(99, Source{Written: at(100), Made: at(100), Removable: true})}, Unknown, StartedAtOnce},
		"all keys, written since it was stamped":      {story{created: 300, started: 301, stamp: Same, source: stamped(50, removable(100))}, Unknown, RemovedUnseen},
		"all keys, of a revision that nobody found":   {story{created: 300, started: 301, stamp: Same, source: Source{Written: at(100), Removable: true, Stamped: NeverStamped()}}, Unknown, RemovedUnseen},
		"all keys of files, written since stamped":    {story{created: 300, started: 301, how: Live, stamp: Same, source: stamped(50, removable(100))}, Unknown, RemovedUnseen},
		"all keys of files, not written since":        {story{created: 300, started: 301, how: Live, stamp: Same, source: stamped(102, removable(100))}, Current, StartedAfter},
		"held, and an annotation may have been added": {story{created: 50, started: 80, stamp: Differs, source: Source{Written: at(100), Blurred: true}}, Unknown, WrittenSince},
		"all keys, no stamp, started after the edit":  {story{created: 200, started: 202, source: removable(100)}, Unknown, RemovedUnseen},

		"seen for long, all keys, restarted":        {story{created: 50, started: 300, restarted: true, stamp: Same, source: seen(200, 200, 10)}, Current, StartedAfter},
		"seen to change, restarted a minute later":  {story{created: 50, started: 366, restarted: true, stamp: Differs, source: seen(200, 300, 299)}, Current, StartedAfter},
		"seen to change, restarted in the minute":   {story{created: 50, started: 365, restarted: true, stamp: Differs, source: seen(200, 300, 299)}, Unknown, StartedSoon},
		"started while somebody watched, no proof":  {story{created: 250, started: 251, stamp: Differs, source: seen(200, 300, 299)}, Unknown, StartUnseen},
		"started before anybody watched":            {story{created: 150, started: 151, stamp: Differs, source: seen(200, 300, 299)}, Old, StartedBefore},
		"a key taken back without a trace":          {story{created: 250, started: 251, stamp: Same, source: seen(200, 300, 0)}, Unknown, StartUnseen},
		"proven":                                    {story{created: 50, started: 52, stamp: Same, proven: Same, source: seen(200, 300, 0)}, Current, SeenToStart},
		"proven, and the stamp is of other content": {story{created: 50, started: 52, stamp: Differs, proven: Same, source: seen(200, 300, 0)}, Current, SeenToStart},
		"proven other content":                      {story{created: 50, started: 52, stamp: Differs, proven: Differs, source: seen(200, 300, 0)}, Old, StartedBefore},
		"proven withdrawn content":                  {story{created: 50, started: 52, stamp: Same, proven: Differs, source: seen(200, 300, 0)}, Unknown, Withdrawn},
		"proven other content, no stamp":            {story{created: 50, started: 52, proven: Differs, source: seen(200, 300, 0)}, Unknown, Withdrawn},

		"files, refreshed":                   {story{created: 50, started: 52, how: Live, stamp: Differs, source: written(846)}, Current, FilesRefreshed},
		"files, not refreshed yet":           {story{created: 50, started: 52, how: Live, stamp: Differs, source: written(847)}, Unknown, Refreshing},
		"files of a new pod":                 {story{created: 961, started: 962, how: Live, stamp: Same, source: written(900)}, Current, StartedAfter},
		"files of a container that restarts": {story{created: 50, started: 980, restarted: true, how: Live, stamp: Same, source: written(900)}, Unknown, Refreshing},
		"files, a key removed":               {story{created: 50, started: 52, how: Live, stamp: Differs, source: removable(10)}, Unknown, RemovedUnseen},
		"files, true":                        {story{created: 50, started: 52, how: Live, stamp: Same, source: removable(10)}, Current, FilesRefreshed},
		"files of a source made anew":        {story{created: 50, started: 52, how: Live, stamp: Same, source: Source{Written: at(60), Made: at(60)}}, Unknown, Remade},
		"files, of a node that is silent":    {story{created: 50, started: 52, lost: true, how: Live, stamp: Same, source: written(10)}, Unknown, NodeSilent},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := Rules{Settle: 2 * time.Second}.Judge(c.pod(), at(1000))
			if got.State != c.want || got.Why != c.why {
				t.Errorf("it is %s\nwant %s", got, Answer{State: c.want, Why: c.why})
			}
		})
	}
}

// Several uses of one pod.
func TestJudge_Several(t *testing.T) {
	holds, lacks := story{created: 50, started: 52, stamp: Same, proven: Same}, story{created: 50, started: 52, stamp: Differs, proven: Differs}
	unclear, idle := story{created: 50, started: 52, stamp: Same}, story{created: 50, stamp: Same}
	for sentence, c := range map[string]struct {
		uses []story
		want State
	}{
		"nothing":                       {nil, Uncounted},
		"all hold it":                   {[]story{holds, holds}, Current},
		"none does":                     {[]story{lacks, lacks}, Old},
		"one does, one does not":        {[]story{holds, lacks}, Mixed},
		"one does not, one is not sure": {[]story{unclear, lacks}, Mixed},
		"one is not sure":               {[]story{holds, unclear}, Unknown},
		"one does not run":              {[]story{idle, holds}, Current},
		"one does not run, one is old":  {[]story{lacks, idle}, Old},
		"none runs":                     {[]story{idle, idle}, Unknown},
	} {
		t.Run(sentence, func(t *testing.T) {
			all := &Pod{Created: at(50)}
			for i, use := range c.uses {
				one := use.pod()
				all.Containers, all.Sources = append(all.Containers, one.Containers[0]), append(all.Sources, one.Sources[0])
				all.Uses, all.Proven = append(all.Uses, Use{Container: i, Source: i}), append(all.Proven, use.proven)
			}
			if got := (Rules{}).Judge(all, at(1000)); got.State != c.want {
				t.Errorf("it is %s, want %s", got, c.want)
			}
		})
	}
}

// A container that reads a snapshot has what the pod's stamp is of, whenever it started, and
// whatever became of the source.
func TestJudge_Pinned(t *testing.T) {
	for stamp, want := range map[Match]State{Same: Current, Differs: Old, NoStamp: Unknown} {
		for _, how := range []How{Variable, File, Live} {
			pod := story{created: 50, started: 130, restarted: true, stamp: stamp, how: how, source: Source{Written: at(129), Missing: true, Removable: true}}.pod()
			pod.Uses[0].Pinned = true
			if got := (Rules{}).Judge(pod, at(131)); got.State != want {
				t.Errorf("stamp %d, %d: it is %s, want %s", stamp, how, got, want)
			}
		}
	}
}
