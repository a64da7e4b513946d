package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/configstamp/configstamp/checksum"
)

// plumbing are the flags that decide neither policy nor pace, and those that name
// namespaces: the chart does not publish them. A new flag is published unless it is here.
var plumbing = []string{
	"address", "client-ca-file", "client-names", "excluded-namespaces", "health-address", "impact-address", "impact-kinds", "key-grace", "kubeconfig", "log-format",
	"metrics-address", "metrics-tls", "name", "namespace", "namespaces", "self-managed-certificate",
	"shutdown-linger", "tls-cert-file", "tls-key-file", "tls-min-version", "v", "workers",
}

// published are the defaults of the flags that the chart publishes.
type published struct {
	Both       map[string]string `json:"both"`
	Webhook    map[string]string `json:"webhook"`
	Controller map[string]string `json:"controller"`
	// Lists may be given several times. They are written with what stands between two values.
	Lists map[string]string `json:"lists"`
}

func publishedFlags(t *testing.T) published {
	t.Helper()
	p := published{map[string]string{}, map[string]string{}, map[string]string{}, map[string]string{}}
	webhook, controller := flagsOf(t, "webhook"), flagsOf(t, "controller")
	add := func(to map[string]string, flag *pflag.Flag) {
		if slices.Contains(plumbing, flag.Name) {
			return
		}
		to[flag.Name] = effective(flag)
		if between, ok := betweenTwo(flag); ok {
			p.Lists[flag.Name] = between
		}
	}
	webhook.VisitAll(func(flag *pflag.Flag) {
		if controller.Lookup(flag.Name) != nil {
			add(p.Both, flag)
		} else {
			add(p.Webhook, flag)
		}
	})
	controller.VisitAll(func(flag *pflag.Flag) {
		if webhook.Lookup(flag.Name) == nil {
			add(p.Controller, flag)
		}
	})
	return p
}

// betweenTwo is what stands between two values of a list; false: the flag is none.
func betweenTwo(flag *pflag.Flag) (string, bool) {
	switch flag.Value.Type() {
	case "stringSlice":
		return ",", true
	case "stringArray":
		return " ", true
	}
	return "", false
}

// effective is what a flag's value comes to, as the chart publishes it: of a setting that
// is not given the word that means the same.
func effective(flag *pflag.Flag) string {
	text := flag.Value.String()
	if between, ok := betweenTwo(flag); ok {
		list, _ := flag.Value.(pflag.SliceValue)
		text = strings.Join(list.GetSlice(), between)
	}
	if word, ok := defaultWord(flag.Name); ok && text == "" {
		return word
	}
	return text
}

// defaultWord is the word for the default of a setting, if it has one.
func defaultWord(name string) (string, bool) {
	for _, setting := range checksum.Settings() {
		if word := regexp.MustCompile("`([a-z]+)` \\(default\\)").FindStringSubmatch(setting.Value); word != nil && setting.Name() == name {
			return word[1], true
		}
	}
	return "", false
}

// The chart cannot ask the program for its defaults, so it has them in a file.
func TestReferenceOfSettingsIsInTheChart(t *testing.T) {
	path := filepath.Join("..", "..", "deploy", "chart", "files", "settings.yaml")
	was, err := os.ReadFile(path)
	if err != nil && !*update {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(publishedFlags(t))
	if err != nil {
		t.Fatal(err)
	}
	keep(t, path, string(was), "# The defaults of flags. Made by: make generate\n"+string(text))
}

// A word for a default means the default.
func TestTheWordOfADefaultMeansIt(t *testing.T) {
	words := 0
	for _, setting := range checksum.Settings() {
		word, ok := defaultWord(setting.Name())
		if !ok || !setting.OnFlag() {
			continue
		}
		words++
		without := checksum.DefaultPolicy()
		with := without.With(checksum.Level{Origin: checksum.OfFlag, Annotations: map[string]string{setting.Key(): word}})
		for i := range reflect.TypeFor[checksum.Policy]().NumField() {
			if field := reflect.TypeFor[checksum.Policy]().Field(i); field.IsExported() && !reflect.DeepEqual(reflect.ValueOf(with).Field(i).Interface(), reflect.ValueOf(without).Field(i).Interface()) {
				t.Errorf("--%s=%s is not the default: it changes %s", setting.Name(), word, field.Name)
			}
		}
	}
	if words < 2 {
		t.Errorf("%d settings have a word for their default", words)
	}
}

// TestPublishedSettingsAreWhatTheArgumentsGive: the program itself reads the arguments of
// each container, in what is rendered in the tree and, where HELM is set, with more values.
func TestPublishedSettingsAreWhatTheArgumentsGive(t *testing.T) {
	for _, file := range []string{"deploy/install.yaml", "deploy/install-self-managed.yaml", "e2e/testdata/everything.yaml", "e2e/testdata/namespaced.yaml", "e2e/testdata/pins.yaml", "e2e/testdata/whole-cluster.yaml"} {
		manifest, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		checkPublished(t, file, manifest)
	}
	helm := os.Getenv("HELM")
	if helm == "" {
		t.Log("SKIPPED: other values of the chart: HELM is not set; make chart sets it")
		return
	}
	for _, values := range []string{
		"policy.restartOn=startup,policy.mode=observe,policy.pause=true",
		"rollouts.step=off,rollouts.maxUnsettled=2%,rollouts.settle=90s",
		"pins.enabled=true,pins.snapshots=0,pins.grace=90m",
		"pins.snapshots=3,controller.extraArgs={--pins,--snapshots=4}",
		"webhook.extraArgs={--freshness-timeout=1s},controller.extraArgs={--settle=5s,--step=3,--settle=7s}",
		"webhook.extraArgs={--mode=observe},controller.extraArgs={--restart-on=everything,--dialects=wave},dialects={reloader},secretProviderClasses=true",
		"webhook.extraArgs={--restart-on=startup,--secret-provider-classes=false},secretProviderClasses=true",
		"controller.extraArgs={--ignore-sources=configmap/a,--ignore-sources=configmap/b\\,configmap/c,--secret-provider-classes}",
		"webhook.extraArgs={--ignore-sources=},controller.extraArgs={--ignore-sources=,--ignore-sources=configmap/a,--mode=}",
		"extraEnv[0].name=CONFIGSTAMP_MODE,extraEnv[0].value=observe,extraEnv[1].name=CONFIGSTAMP_FRESHNESS_TIMEOUT,extraEnv[1].value=500ms,extraEnv[2].name=CONFIGSTAMP_STEP,extraEnv[2].value=7",
		"extraEnv[0].name=CONFIGSTAMP_IGNORE_SOURCES,extraEnv[0].value=configmap/x,extraEnv[1].name=CONFIGSTAMP_RESTART_ON,extraEnv[1].value=,controller.extraArgs={--ignore-sources=configmap/y}",
		"workloads[0].group=a.com,workloads[0].version=v1,workloads[0].resource=engines,workloads[0].template=spec.template,workloads[0].rollout=Ready," +
			"workloads[1].group=b.com,workloads[1].version=v1,workloads[1].resource=wheels,workloads[1].template=spec.template",
	} {
		manifest, err := exec.CommandContext(t.Context(), helm, "template", "configstamp", filepath.Join("..", "..", "deploy", "chart"), "--namespace=configstamp", "--set", values).Output()
		if err != nil {
			t.Fatalf("%s: %v", values, err)
		}
		checkPublished(t, values, manifest)
	}
}

// checkPublished compares what a manifest publishes with what its containers are given.
func checkPublished(t *testing.T, name string, manifest []byte) {
	t.Helper()
	var settings corev1.ConfigMap
	var containers []corev1.Container
	for _, text := range bytes.Split(manifest, []byte("\n---\n")) {
		switch {
		case bytes.Contains(text, []byte("\nkind: ConfigMap\n")) && bytes.Contains(text, []byte("name: configstamp-settings\n")):
			read(t, text, &settings)
		case bytes.Contains(text, []byte("\nkind: Deployment\n")):
			var deployment appsv1.Deployment
			read(t, text, &deployment)
			containers = deployment.Spec.Template.Spec.Containers
		}
	}
	want := map[string]string{}
	for _, process := range []string{"controller", "webhook"} {
		at := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == process })
		if at < 0 {
			t.Fatalf("%s: there is no container %s", name, process)
		}
		flags := flagsOf(t, process)
		if err := flags.Parse(containers[at].Args[1:]); err != nil {
			t.Fatalf("%s: %s: %v", name, process, err)
		}
		flags.VisitAll(func(flag *pflag.Flag) {
			if slices.Contains(plumbing, flag.Name) {
				return
			}
			for _, variable := range containers[at].Env {
				if variable.Name != envName(flag) || flag.Changed {
					continue
				}
				if err := flag.Value.Set(variable.Value); err != nil {
					t.Fatalf("%s: %s: %v", name, variable.Name, err)
				}
			}
			if given, ok := want[flag.Name]; !ok {
				want[flag.Name] = effective(flag)
			} else if given != effective(flag) {
				want["webhook."+flag.Name] = effective(flag)
			}
		})
	}
	for key, value := range settings.Data {
		if asRead(t, key, value) != want[key] {
			t.Errorf("%s: it publishes %s: %q, and the arguments give %q", name, key, value, want[key])
		}
	}
	for key := range want {
		if _, ok := settings.Data[key]; !ok {
			t.Errorf("%s: it does not publish %s", name, key)
		}
	}
}

// asRead is a published value as its flag writes it: 1h is 1h0m0s.
func asRead(t *testing.T, key, value string) string {
	t.Helper()
	name := strings.TrimPrefix(key, "webhook.")
	for _, process := range []string{"controller", "webhook"} {
		flag := flagsOf(t, process).Lookup(name)
		if flag == nil {
			continue
		}
		if between, ok := betweenTwo(flag); ok {
			list, _ := flag.Value.(pflag.SliceValue)
			if err := list.Replace(strings.FieldsFunc(value, func(r rune) bool { return string(r) == between })); err != nil {
				t.Fatal(err)
			}
		} else if err := flag.Value.Set(value); err != nil {
			return fmt.Sprintf("%q, which --%s does not take: %v", value, name, err)
		}
		return effective(flag)
	}
	return "no flag of ours"
}

func read(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}
