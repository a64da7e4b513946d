package observability

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

type dashboard struct {
	UID        string  `json:"uid"`
	Title      string  `json:"title"`
	Panels     []panel `json:"panels"`
	Templating struct {
		List []struct {
			Name string `json:"name"`
		} `json:"list"`
	} `json:"templating"`
}

type panel struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Datasource  struct {
		UID string `json:"uid"`
	} `json:"datasource"`
	GridPos struct {
		X, Y, W, H int
	} `json:"gridPos"`
	FieldConfig struct {
		Defaults struct {
			Unit string `json:"unit"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
	Targets []struct {
		Expr       string `json:"expr"`
		RefID      string `json:"refId"`
		Datasource struct {
			UID string `json:"uid"`
		} `json:"datasource"`
	} `json:"targets"`
}

func theDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	if err := json.Unmarshal([]byte(read(t, dashboardFile)), &d); err != nil {
		t.Fatalf("%s: %v", dashboardFile, err)
	}
	if len(d.Panels) == 0 {
		t.Fatalf("%s has no panel", dashboardFile)
	}
	return d
}

type query struct{ panel, expr string }

// dashboardQueries are the queries as Grafana sends them.
func dashboardQueries(t *testing.T) (all []query) {
	t.Helper()
	filled := strings.NewReplacer("$namespace", ".*", "$__rate_interval", "2m")
	for _, panel := range theDashboard(t).Panels {
		for _, target := range panel.Targets {
			all = append(all, query{panel.Title, filled.Replace(target.Expr)})
		}
	}
	return all
}

func TestTheDashboardAsksForWhatThereIs(t *testing.T) {
	known := knownMetrics(t)
	for _, query := range dashboardQueries(t) {
		for _, problem := range problems(query.expr, known) {
			t.Errorf("%s: %s", query.panel, problem)
		}
	}
}

// TestEachPanelCanBeRead: it says what it shows, of which installation, in which
// unit, and stands beside the others.
func TestEachPanelCanBeRead(t *testing.T) {
	d := theDashboard(t)
	variables := map[string]bool{}
	for _, variable := range d.Templating.List {
		variables[variable.Name] = true
	}
	if d.UID == "" || d.Title == "" || !variables["datasource"] || !variables["namespace"] {
		t.Errorf("uid %q, title %q, variables %v, want datasource and namespace", d.UID, d.Title, variables)
	}
	ids, taken := map[int]string{}, map[[2]int]string{}
	for _, panel := range d.Panels {
		if other := ids[panel.ID]; other != "" {
			t.Errorf("%s has the id of %s", panel.Title, other)
		}
		ids[panel.ID] = panel.Title
		for x := panel.GridPos.X; x < panel.GridPos.X+panel.GridPos.W; x++ {
			for y := panel.GridPos.Y; y < panel.GridPos.Y+panel.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" && other != panel.Title {
					t.Fatalf("%s lies over %s", panel.Title, other)
				}
				if taken[[2]int{x, y}] = panel.Title; x >= 24 {
					t.Fatalf("%s does not fit on the page", panel.Title)
				}
			}
		}
		if panel.Type == "row" {
			continue
		}
		if len(panel.Targets) == 0 || panel.Description == "" || panel.FieldConfig.Defaults.Unit == "" || panel.Datasource.UID != "${datasource}" {
			t.Errorf("%s: %d queries, description %q, unit %q, data source %q", panel.Title, len(panel.Targets), panel.Description, panel.FieldConfig.Defaults.Unit, panel.Datasource.UID)
		}
		refs := map[string]bool{}
		for _, target := range panel.Targets {
			if refs[target.RefID] || target.Datasource.UID != "${datasource}" || !strings.Contains(target.Expr, `namespace=~"$namespace"`) {
				t.Errorf("%s: %s", panel.Title, fmt.Sprintf("the query %s is not of the namespaces and the data source that were chosen: %s", target.RefID, target.Expr))
			}
			refs[target.RefID] = true
		}
	}
}
