package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func execute(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root := rootCommand()
	var printed bytes.Buffer
	root.SetOut(&printed)
	root.SetErr(&printed)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return printed.String(), err
}

func TestWrongFlagsAreErrorsThatNameThem(t *testing.T) {
	for sentence, test := range map[string]struct {
		args        []string
		environment map[string]string
		want        string
	}{
		"no certificate":                 {args: []string{"webhook"}, want: "--tls-cert-file"},
		"two ways to a certificate":      {args: []string{"webhook", "--tls-cert-file=a", "--tls-key-file=b", "--self-managed-certificate"}, want: "either"},
		"a certificate without its key":  {args: []string{"webhook", "--tls-cert-file=a"}, want: "--tls-key-file"},
		"warnings without a certificate": {args: []string{"controller", "--impact-address=:8444"}, want: "--impact-address: give either"},
		"metrics by TLS, probes too":     {args: []string{"controller", "--metrics-tls", "--self-managed-certificate"}, want: "--health-address"},
		"metrics by TLS, no certificate": {args: []string{"controller", "--metrics-tls", "--health-address=:8082"}, want: "--tls-cert-file"},
		"metrics by TLS, half of one":    {args: []string{"controller", "--metrics-tls", "--health-address=:8082", "--tls-cert-file=a"}, want: "--tls-key-file"},
		"a TLS of long ago":              {args: []string{"webhook", "--self-managed-certificate", "--tls-min-version=1.1"}, want: "--tls-min-version=1.1: want 1.2 or 1.3"},
		"authorities without a name":     {args: []string{"webhook", "--self-managed-certificate", "--client-ca-file=a"}, want: "--client-names"},
		"names without an authority":     {args: []string{"webhook", "--self-managed-certificate", "--client-names=a"}, want: "--client-ca-file"},
		"a name that is empty":           {args: []string{"webhook", "--self-managed-certificate", "--client-ca-file=a", "--client-names=a,"}, want: "--client-names"},
		"impact of what is no source":    {args: []string{"controller", "--impact-address=:8444", "--impact-kinds=pods"}, want: "--impact-kinds=pods"},
		"a namespace that cannot be":     {args: []string{"controller", "--namespaces=A_B"}, want: `"A_B"`},
		"Secrets alone":                  {args: []string{"controller", "--sources=secrets"}, want: "--sources=secrets: want configmaps,secrets or configmaps"},
		"an opt-in that is none":         {args: []string{"controller", "--opt-in=everything"}, want: `--opt-in: reading opt-in "everything": want labelled or all`},
		"the whole cluster, and a list":  {args: []string{"webhook", "--self-managed-certificate", "--opt-in=all", "--namespaces=a"}, want: "--opt-in=all and --namespaces exclude each other"},
		"the same by the environment":    {args: []string{"controller", "--namespaces=a"}, environment: map[string]string{"CONFIGSTAMP_OPT_IN": "all"}, want: "--opt-in=all and --namespaces exclude each other"},
		"a source that cannot be":        {args: []string{"controller", "--ignore-sources=pod/x"}, want: "pod/x"},
		"two pod templates of a kind":    {args: []string{"webhook", "--self-managed-certificate", "--workload=example.com/v1/sets=spec.leader", "--workload=example.com/v2/sets=spec.worker"}, want: "--workload: sets.example.com is given twice, with the pod templates spec.leader and spec.worker"},
		"a log format":                   {args: []string{"controller", "--log-format=xml"}, want: "--log-format=xml"},
		"a negative time":                {args: []string{"controller", "--settle=-1s"}, want: "--settle=-1s"},
		"a first soak of days":           {args: []string{"controller", "--first-soak=25h"}, want: "--first-soak=25h0m0s: want 0s to 1h0m0s"},
		"a negative first soak":          {args: []string{"controller", "--first-soak=-1s"}, want: "--first-soak=-1s"},
		"no workers":                     {args: []string{"controller", "--workers=0"}, want: "--workers=0"},
		"half a workload at once":        {args: []string{"controller", "--max-unsettled=0.5"}, want: `"0.5" for "--max-unsettled" flag: want a whole number`},
		"less than none of a namespace":  {args: []string{"controller", "--max-unsettled-per-namespace=-1"}, want: "--max-unsettled-per-namespace=-1"},
		"snapshots, fewer than none":     {args: []string{"controller", "--snapshots=-1"}, want: "--snapshots=-1"},
		"snapshots that go at once":      {args: []string{"controller", "--snapshot-grace=0s"}, want: "--snapshot-grace=0s"},
		"copies that roll otherwise":     {args: []string{"controller", "--replicated=alone"}, want: "--replicated=alone: want together or each"},
		"an environment variable":        {args: []string{"controller"}, environment: map[string]string{"CONFIGSTAMP_SETTLE": "soon"}, want: "CONFIGSTAMP_SETTLE"},
		"a kubeconfig that is not there": {args: []string{"controller", "--kubeconfig=/nowhere"}, want: "/nowhere"},
		"no cluster around":              {args: []string{"controller"}, want: "--kubeconfig"},
		"an argument":                    {args: []string{"controller", "now"}, want: `"now"`},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			for name, value := range test.environment {
				t.Setenv(name, value)
			}
			_, err := execute(t, test.args...)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one that names %s", err, test.want)
			}
		})
	}
}

func TestAFlagOverrulesItsEnvironmentVariable(t *testing.T) {
	t.Setenv("CONFIGSTAMP_WORKERS", "0")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := execute(t, "controller", "--workers=3"); err == nil || strings.Contains(err.Error(), "--workers") {
		t.Errorf("error %v: the environment variable counted", err)
	}
	if _, err := execute(t, "controller"); err == nil || !strings.Contains(err.Error(), "--workers=0") {
		t.Errorf("error %v: the environment variable did not count", err)
	}
}

// pflag takes a word in backquotes as the name of the flag's value.
func TestHelpNamesNoValueAfterAWordOfItsText(t *testing.T) {
	for _, command := range rootCommand().Commands() {
		command.Flags().VisitAll(func(flag *pflag.Flag) {
			if strings.Contains(flag.Usage, "`") {
				t.Errorf("%s --%s: %s", command.Name(), flag.Name, flag.Usage)
			}
		})
	}
}

// The texts of flags refer to the flag above.
func TestHelpListsFlagsAsTheyAreDeclared(t *testing.T) {
	for command, order := range map[string][]string{
		"controller": {"--tls-cert-file", "--tls-key-file", "--max-unsettled ", "--max-unsettled-per-namespace", "--soak", "--first-soak", "--crash-deadline"},
		"webhook":    {"--namespace ", "--key-grace", "--restart-on", "--mode ", "--pause ", "--freshness-timeout", "--shutdown-linger"},
	} {
		help, err := execute(t, command, "--help")
		if err != nil {
			t.Fatal(err)
		}
		at := -1
		for _, flag := range order {
			next := strings.Index(help, " "+flag)
			if next <= at {
				t.Errorf("%s --help: %s is not where it belongs, after the flags %q before it", command, flag, order)
			}
			at = next
		}
	}
}

// A developer's environment is the product's, too: no tool of the tests reads a variable that gives a flag its value.
func TestToolsReadNoVariableOfAFlag(t *testing.T) {
	flags := map[string]bool{}
	for _, command := range rootCommand().Commands() {
		command.Flags().VisitAll(func(flag *pflag.Flag) { flags[envName(flag)] = true })
	}
	reads := regexp.MustCompile(`(?i)(?:getenv|lookupenv)\("(` + envPrefix + `\w+)"\)`)
	read := 0
	for _, dir := range []string{"e2e", "site", ".ci"} {
		err := filepath.WalkDir(filepath.Join("..", "..", dir), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
				return err
			}
			text, err := os.ReadFile(path)
			for _, found := range reads.FindAllStringSubmatch(string(text), -1) {
				read++
				if flags[found[1]] {
					t.Errorf("%s reads %s", path, found[1])
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if read == 0 {
		t.Error("no tool reads a variable: look for another form")
	}
}
