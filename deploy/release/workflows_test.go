package main

import (
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// workflow is what is looked at of one.
type workflow struct {
	Permissions *map[string]string
	Jobs        map[string]struct {
		TimeoutMinutes int `json:"timeout-minutes"`
		Steps          []struct{ Uses, Run string }
	}
}

// What a workflow runs cannot change behind its back: actions are named by commit. It may
// nothing but what is said, and the targets that it makes exist.
func TestWorkflows(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*.yaml"))
	must(t, err)
	targets := string(content(t, filepath.Join(root, "Makefile")))
	pinned, made := regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40}$`), regexp.MustCompile(`\bmake (?:--[\w-]+ )*([a-z][a-z-]*)`)
	commits, actions, calls := map[string]string{}, 0, 0
	for _, file := range files {
		var w workflow
		must(t, yaml.Unmarshal(content(t, file), &w))
		name := filepath.Base(file)
		if w.Permissions == nil || slices.Contains(slices.Collect(maps.Values(*w.Permissions)), "write") {
			t.Errorf("%s: permissions for all of its jobs: %v; want none, or to read", name, w.Permissions)
		}
		for job, of := range w.Jobs {
			if of.TimeoutMinutes == 0 {
				t.Errorf("%s: the job %s may run for hours", name, job)
			}
			for _, step := range of.Steps {
				if step.Uses != "" {
					actions++
					repository, commit, _ := strings.Cut(step.Uses, "@")
					if !pinned.MatchString(step.Uses) {
						t.Errorf("%s: %s is not named by a commit", name, step.Uses)
					} else if was := commits[repository]; was != "" && was != commit {
						t.Errorf("%s: %s is of another commit elsewhere", name, step.Uses)
					}
					commits[repository] = commit
				}
				for _, target := range made.FindAllStringSubmatch(step.Run, -1) {
					if calls++; !regexp.MustCompile(`(?m)^` + target[1] + `:`).MatchString(targets) {
						t.Errorf("%s: there is no target %s to make", name, target[1])
					}
				}
			}
		}
	}
	if actions < 10 || calls < 2 {
		t.Errorf("only %d actions and %d targets were found", actions, calls)
	}
}

// Every module is looked after.
func TestDependabotKnowsEveryModule(t *testing.T) {
	var settings struct {
		Updates []struct{ Directories []string }
	}
	must(t, yaml.Unmarshal(content(t, filepath.Join(root, ".github", "dependabot.yml")), &settings))
	var modules []string
	must(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && slices.Contains([]string{".git", "dist", "testdata"}, entry.Name()) {
			return filepath.SkipDir
		}
		if err == nil && entry.Name() == "go.mod" {
			folder, _ := filepath.Rel(root, filepath.Dir(path))
			modules = append(modules, filepath.ToSlash(filepath.Join("/", folder)))
		}
		return err
	}))
	slices.Sort(modules)
	if got := settings.Updates[0].Directories; !slices.Equal(got, modules) {
		t.Errorf("it knows %q; the modules are %q", got, modules)
	}
}
