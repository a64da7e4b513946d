package checksum_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/configstamp/configstamp/checksum"
)

// What one object may cost. Anybody who can create a Deployment has it read by the
// controller, so a template must not cost the square of its size.

// allocated counts the bytes that something takes, freed or not. With the race
// detector they are several times as many.
func allocated(what func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	what()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

const many = 2000

// mountedOften is a volume that a container mounts by many paths.
func mountedOften(volume corev1.VolumeSource, subPath func(i int) string) *corev1.PodSpec {
	web := corev1.Container{Name: "web"}
	for i := range many {
		web.VolumeMounts = append(web.VolumeMounts, corev1.VolumeMount{Name: "files", MountPath: fmt.Sprint("/", i), SubPath: subPath(i)})
	}
	return &corev1.PodSpec{Containers: []corev1.Container{web}, Volumes: []corev1.Volume{{Name: "files", VolumeSource: volume}}}
}

func manyItems(file string) (items []corev1.KeyToPath) {
	for i := range many {
		items = append(items, corev1.KeyToPath{Key: fmt.Sprint("key-", i), Path: fmt.Sprintf(file, i)})
	}
	return items
}

func TestManyMountsCostNoMoreThanTheyAreWritten(t *testing.T) {
	ofItems := func(file string) corev1.VolumeSource {
		return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "web"}, Items: manyItems(file)}}
	}
	var projected corev1.ProjectedVolumeSource
	for i := range many {
		projected.Sources = append(projected.Sources, corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: fmt.Sprint("db-", i)}}})
	}
	for about, c := range map[string]struct {
		spec *corev1.PodSpec
		// selected is how many keys the first source has selected; 0: all.
		selected int
	}{
		"of the whole volume":                   {mountedOften(ofItems("%d"), func(int) string { return "" }), many},
		"of one path":                           {mountedOften(ofItems("./dir/%d"), func(int) string { return "dir" }), many},
		"of a path for each item":               {mountedOften(ofItems("./dir/%d"), func(i int) string { return fmt.Sprint("dir/", i) }), many},
		"of as many paths, by which nothing is": {mountedOften(ofItems("./dir/%d"), func(i int) string { return fmt.Sprint("other/", i) }), 0},
		"of a projected volume of many":         {mountedOften(corev1.VolumeSource{Projected: &projected}, func(int) string { return "" }), 0},
	} {
		t.Run(about, func(t *testing.T) {
			var joined []checksum.Reference
			var selections []checksum.Selection
			took := allocated(func() {
				references := checksum.References(c.spec)
				joined = checksum.Joined(references)
				selections = checksum.Selections(references, checksum.DefaultPolicy())
			})
			if limit := uint64(128 << 20); took > limit {
				t.Errorf("it takes %d bytes, want %d at most", took, limit)
			}
			if len(selections) != len(joined) || len(selections[0].Keys) != c.selected {
				t.Errorf("%d selections, the first of %d keys, of %d references", len(selections), len(selections[0].Keys), len(joined))
			}
		})
	}
}

// A source may be named so often, each time with all its keys.
func TestTheSameKeysAgainAndAgainAreGatheredOnce(t *testing.T) {
	var keys []string
	for i := range many {
		keys = append(keys, fmt.Sprint("key-", i))
	}
	references := slices.Repeat([]checksum.Reference{mounted(message, keys...)}, 300)
	took := allocated(func() {
		joined := checksum.Joined(references)
		selections := checksum.Selections(references, checksum.DefaultPolicy())
		if len(joined) != 1 || len(joined[0].Keys) != many || len(selections) != 1 || len(selections[0].Keys) != many || len(selections[0].RequiredKeys) != many {
			t.Errorf("%d references, %d selections", len(joined), len(selections))
		}
	})
	if limit := uint64(64 << 20); took > limit {
		t.Errorf("it takes %d bytes, want %d at most", took, limit)
	}
}

// That they are sorted is how many are put together without comparing each with
// each.
func TestJoinedReferencesAreSorted(t *testing.T) {
	var references []checksum.Reference
	for i := range many {
		source := checksum.Source{Kind: checksum.Secret, Name: fmt.Sprintf("db-%04d", many-i)}
		references = append(references, env(source, "b"), optional(envFrom(source)), env(source, "a"))
	}
	joined := checksum.Joined(references)
	if len(joined) != 2*many {
		t.Fatalf("%d references, want %d", len(joined), 2*many)
	}
	if !slices.IsSortedFunc(joined, func(a, b checksum.Reference) int { return cmp.Compare(a.Source.Name, b.Source.Name) }) {
		t.Error("they are not sorted")
	}
	if diff := gocmp.Diff([]string{"a", "b"}, joined[0].Keys); diff != "" {
		t.Error(diff)
	}
}

// All mounts of a volume together select what each of them does alone.
func TestMountsTogetherSelectWhatEachSelectsAlone(t *testing.T) {
	rounds := 400
	if testing.Short() {
		rounds /= 10
	}
	chance := rand.New(rand.NewPCG(1, 2))
	paths := []string{"", "a", "a/b", "a/b/c", "a-b", "a.b/c", "b", "./a/", "..data/a", "a//b", ".", "..data"}
	items := func() (items []corev1.KeyToPath) {
		for range chance.IntN(6) {
			items = append(items, corev1.KeyToPath{Key: string(rune('k' + chance.IntN(8))), Path: paths[1+chance.IntN(9)]})
		}
		return items
	}
	yes := true
	for range rounds {
		volume := corev1.Volume{Name: "files", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "web"}, Items: items()}},
			{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}, Items: items(), Optional: &yes}},
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "web"}, Items: items()}},
		}}}}
		all := corev1.PodSpec{Volumes: []corev1.Volume{volume}}
		var alone []checksum.Reference
		for range 1 + chance.IntN(5) {
			container := corev1.Container{Name: "web", VolumeMounts: []corev1.VolumeMount{{Name: "files", SubPath: paths[chance.IntN(len(paths))]}}}
			one := corev1.PodSpec{Volumes: all.Volumes}
			if chance.IntN(3) == 0 {
				all.InitContainers, one.InitContainers = append(all.InitContainers, container), []corev1.Container{container}
			} else {
				all.Containers, one.Containers = append(all.Containers, container), []corev1.Container{container}
			}
			alone = append(alone, checksum.References(&one)...)
		}
		together := checksum.References(&all)
		for _, setting := range []string{"all", "startup", "everything"} {
			policy := checksum.DefaultPolicy().With(onWorkload("restart-on", setting))
			want := checksum.Selections(alone, policy)
			for about, got := range map[string][]checksum.Reference{"together": together, "joined": checksum.Joined(together), "alone, joined": checksum.Joined(alone)} {
				if diff := gocmp.Diff(want, checksum.Selections(got, policy), cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(checksum.Selection{})); diff != "" {
					t.Fatalf("%s differ (-alone +got):\n%s\nof %+v", about, diff, all)
				}
			}
		}
	}
}
