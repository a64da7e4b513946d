package observability

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/alertmanager/alert"
	"github.com/prometheus/alertmanager/config"
	"github.com/prometheus/alertmanager/dispatch"
	"github.com/prometheus/alertmanager/notify"
	"github.com/prometheus/alertmanager/notify/msteamsv2"
	"github.com/prometheus/alertmanager/notify/slack"
	"github.com/prometheus/alertmanager/notify/webhook"
	amtemplate "github.com/prometheus/alertmanager/template"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/promql"
	promtemplate "github.com/prometheus/prometheus/template"
)

const (
	chatFolder = "../../examples/alertmanager/"
	chatPage   = "../../docs/chat.md"
)

// chat is Alertmanager, as examples/alertmanager sets it up, with rooms that keep what comes.
type chat struct {
	config    *config.Config
	templates *amtemplate.Template
	came      string
}

func newChat(t *testing.T) *chat {
	t.Helper()
	c := &chat{}
	room := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		c.came = string(body)
		_, _ = io.WriteString(w, "ok")
	}))
	t.Cleanup(room.Close)
	dir := t.TempDir()
	for _, name := range []string{"slack-url", "teams-url", "on-call-url"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(room.URL), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	c.config, err = config.Load(strings.ReplaceAll(read(t, chatFolder+"alertmanager.yaml"), "/etc/alertmanager/secrets", dir))
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, file := range c.config.Templates {
		files = append(files, chatFolder+file)
	}
	c.templates, err = amtemplate.FromGlobs(files)
	if err != nil {
		t.Fatal(err)
	}
	c.templates.ExternalURL = &url.URL{Scheme: "https", Host: "alertmanager.example.com"}
	return c
}

// receivers are the names of those to whom an alert goes.
func (c *chat) receivers(alert *alert.Alert) (names []string) {
	for _, route := range dispatch.NewRoute(c.config.Route, nil).Match(alert.Labels) {
		names = append(names, route.RouteOpts.Receiver)
	}
	return names
}

// send gives an alert to a receiver, by Alertmanager's own notifier, and says what came.
func (c *chat) send(t *testing.T, to string, one *alert.Alert) string {
	t.Helper()
	at := slices.IndexFunc(c.config.Receivers, func(r config.Receiver) bool { return r.Name == to })
	receiver, log := c.config.Receivers[at], slog.New(slog.DiscardHandler)
	var notifier notify.Notifier
	var err error
	switch to {
	case "slack":
		notifier, err = slack.New(receiver.SlackConfigs[0], c.templates, log)
	case "teams":
		notifier, err = msteamsv2.New(receiver.MSTeamsV2Configs[0], c.templates, log)
	case "on-call":
		notifier, err = webhook.New(receiver.WebhookConfigs[0], c.templates, log)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx := notify.WithGroupKey(t.Context(), "group")
	ctx = notify.WithReceiverName(ctx, to)
	ctx = notify.WithNow(ctx, time.Now())
	ctx = notify.WithRepeatInterval(ctx, time.Hour)
	ctx = notify.WithGroupLabels(ctx, model.LabelSet{"alertname": one.Labels["alertname"], "cluster": one.Labels["cluster"], "namespace": one.Labels["namespace"]})
	if _, err := notifier.Notify(ctx, one); err != nil {
		t.Fatalf("%s: %v", to, err)
	}
	return c.came
}

// fired is an alert of the chart as Prometheus sends it.
func fired(t *testing.T, of rule) *alert.Alert {
	t.Helper()
	one := &alert.Alert{}
	one.StartsAt = time.Now().Add(-time.Minute)
	one.EndsAt = time.Now().Add(time.Hour)
	one.Labels = model.LabelSet{"alertname": model.LabelValue(of.Alert), "cluster": "prod", "namespace": "configstamp"}
	labels := map[string]string{"cluster": "prod", "namespace": "configstamp", "instance": "10.0.0.7:8081", "process": "controller", "store": "sources", "job": "configstamp"}
	for name, value := range of.Labels {
		one.Labels[model.LabelName(name)] = model.LabelValue(value)
	}
	one.Annotations = model.LabelSet{}
	for name, text := range of.Annotations {
		text = "{{$labels := .Labels}}{{$value := .Value}}" + text
		data := promtemplate.AlertTemplateData(labels, nil, "", promql.Sample{F: 1})
		expanded, err := promtemplate.NewTemplateExpander(t.Context(), text, of.Alert, data, model.Time(timestamp.FromTime(time.Now())), nil, nil, nil).Expand()
		if err != nil {
			t.Fatal(err)
		}
		one.Annotations[model.LabelName(name)] = model.LabelValue(expanded)
	}
	return one
}

// Every alert comes to those who are to get it, and every message has what it is, what it
// means, what to type, and where to read on.
func TestChat_EachAlertIsTold(t *testing.T) {
	c := newChat(t)
	wanted := map[string][]string{"critical": {"on-call", "teams", "slack"}, "warning": {"teams", "slack"}, "info": {"slack"}}
	for _, of := range alerts(t) {
		one := fired(t, of)
		receivers := c.receivers(one)
		if want := wanted[of.Labels["severity"]]; !slices.Equal(receivers, want) {
			t.Errorf("%s, %s, goes to %q, want %q", of.Alert, of.Labels["severity"], receivers, want)
		}
		for _, receiver := range receivers {
			message := c.send(t, receiver, one)
			for _, part := range []string{"alertname", "summary", "description", "command", "runbook_url"} {
				text := string(one.Annotations[model.LabelName(part)])
				if part == "alertname" {
					text = of.Alert
				}
				if !strings.Contains(message, inJSON(t, text)) {
					t.Errorf("%s to %s does not say its %s, %q:\n%s", of.Alert, receiver, part, text, message)
				}
			}
			if strings.Contains(message, "no value") {
				t.Errorf("%s to %s misses something:\n%s", of.Alert, receiver, message)
			}
		}
	}
	if other := c.receivers(&alert.Alert{Alert: model.Alert{Labels: model.LabelSet{"alertname": "Other", "severity": "critical"}}}); !slices.Equal(other, []string{"nobody"}) {
		t.Errorf("an alert of somebody else goes to %q", other)
	}
}

// What is over is told shortly.
func TestChat_WhatIsOver(t *testing.T) {
	c, one := newChat(t), fired(t, alerts(t)[0])
	one.EndsAt = time.Now().Add(-time.Second)
	for _, receiver := range []string{"slack", "teams"} {
		if message := c.send(t, receiver, one); !strings.Contains(message, "[RESOLVED]") || !strings.Contains(message, "It is over.") || strings.Contains(message, inJSON(t, string(one.Annotations["command"]))) {
			t.Errorf("%s is told:\n%s", receiver, message)
		}
	}
}

// The page shows what is read in a chat, and no other alert than the one that it names.
func TestChat_ThePageShowsWhatIsRead(t *testing.T) {
	c, page := newChat(t), read(t, chatPage)
	halted := slices.IndexFunc(alerts(t), func(r rule) bool { return r.Alert == "ConfigstampChangeHalted" })
	one := fired(t, alerts(t)[halted])
	ctx := notify.WithReceiverName(notify.WithGroupLabels(t.Context(), one.Labels), "slack")
	data := notify.GetTemplateData(ctx, c.templates, []*alert.Alert{one}, promslog.NewNopLogger())
	for _, name := range []string{"title", "slack"} {
		text, err := c.templates.ExecuteTextString(`{{ template "configstamp.`+name+`" . }}`, data)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(words(page), words(text)) {
			t.Errorf("%s does not show configstamp.%s as it is read:\n%s", chatPage, name, text)
		}
	}
}

// words is a text without its line breaks.
func words(text string) string { return strings.Join(strings.Fields(text), " ") }

// inJSON is how a text stands in a message.
func inJSON(t *testing.T, text string) string {
	t.Helper()
	var quoted strings.Builder
	if err := json.NewEncoder(&quoted).Encode(text); err != nil {
		t.Fatal(err)
	}
	return strings.Trim(strings.TrimSpace(quoted.String()), `"`)
}
