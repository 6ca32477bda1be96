package office

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"castellan/config"
	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
	"castellan/internal/porttest"
)

// The settings in the files for operators exist, and are valid together.
func TestDeploymentSettingsAreValid(t *testing.T) {
	place := strings.NewReplacer("$(POD_IP)", "10.0.0.1", "${POSTGRES_PASSWORD:?set it in .env}", "secret")
	fallback := regexp.MustCompile(`\$\{[A-Z_]+:-([^}]*)\}`)
	value := func(s string) string { return fallback.ReplaceAllString(place.Replace(s), "$1") }

	for _, file := range []string{"../../deploy/kubernetes/castellan.yaml", "../../deploy/compose.yaml"} {
		var found [][]string // the environments in the file
		for _, doc := range documents(t, file) {
			walk(doc, func(key string, v any) {
				var env []string
				switch v := v.(type) {
				case map[string]any:
					for name, v := range v {
						if s, ok := v.(string); ok && strings.HasPrefix(name, "CASTELLAN_") {
							env = append(env, name+"="+value(s))
						}
					}
				case []any:
					for _, v := range v {
						m, ok := v.(map[string]any)
						name, _ := m["name"].(string)
						if !ok || !strings.HasPrefix(name, "CASTELLAN_") {
							continue
						}
						s, ok := m["value"].(string)
						if !ok {
							s = "postgres://castellan:secret@db:5432/castellan" // the one that is a secret
						}
						env = append(env, name+"="+value(s))
					}
				}
				if (key == "environment" || key == "env") && len(env) > 0 {
					found = append(found, env)
				}
			})
		}
		if len(found) == 0 {
			t.Errorf("%s: no settings", file)
		}
		for _, env := range found {
			c, err := config.Load("", env)
			if err != nil {
				t.Errorf("%s: %v", file, err)
			}
			if c.Cluster.GossipAddr == "" || c.Cluster.TLSDir == "" ||
				!slices.ContainsFunc(c.Cluster.Join, func(s string) bool { return strings.HasSuffix(s, ":7946") }) {
				t.Errorf("%s: %+v forms no cluster", file, c.Cluster)
			}
			if len(c.HTTP.TrustedProxies) == 0 {
				t.Errorf("%s: every client is the proxy", file)
			}
		}
	}
}

// References between the objects of the Kubernetes manifests resolve.
func TestManifestReferencesResolve(t *testing.T) {
	kinds := map[string]map[string]any{}
	for _, doc := range documents(t, "../../deploy/kubernetes/castellan.yaml") {
		name := doc["kind"].(string) + "/" + doc["metadata"].(map[string]any)["name"].(string)
		kinds[name] = doc["spec"].(map[string]any)
	}
	set := kinds["StatefulSet/castellan"]
	if set == nil || kinds["Service/"+set["serviceName"].(string)] == nil ||
		kinds["PodDisruptionBudget/castellan"] == nil {
		t.Fatalf("missing among %v", kinds)
	}
	pod := set["template"].(map[string]any)["spec"].(map[string]any)
	container := pod["containers"].([]any)[0].(map[string]any)
	named := func(list any) (names []string) {
		for _, v := range list.([]any) {
			names = append(names, v.(map[string]any)["name"].(string))
		}
		return names
	}
	for _, name := range named(container["volumeMounts"]) {
		if !slices.Contains(named(pod["volumes"]), name) {
			t.Errorf("volume %s is mounted and not there", name)
		}
	}
	ports := named(container["ports"])
	for _, service := range []string{"Service/castellan", "Service/castellan-nodes"} {
		for _, p := range kinds[service]["ports"].([]any) {
			if to := p.(map[string]any)["targetPort"].(string); !slices.Contains(ports, to) {
				t.Errorf("%s leads to port %s, which is not there", service, to)
			}
		}
	}
}

func documents(t *testing.T, file string) (docs []map[string]any) {
	t.Helper()
	text := storetest.Value(os.ReadFile(file))(t)
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var doc map[string]any
		if err := d.Decode(&doc); errors.Is(err, io.EOF) {
			return docs
		} else if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		docs = append(docs, doc)
	}
}

// walk visits every value in a document with its key.
func walk(v any, visit func(key string, v any)) {
	switch v := v.(type) {
	case map[string]any:
		for k, v := range v {
			visit(k, v)
			walk(v, visit)
		}
	case []any:
		for _, v := range v {
			walk(v, visit)
		}
	}
}

func deployed(t *testing.T, file string) string {
	t.Helper()
	text := storetest.Value(os.ReadFile("../../" + file))(t)
	return string(text)
}

// The token of a socket is in its query, so no log of the front contains a query.
func TestFrontProxyLogsNoQuery(t *testing.T) {
	conf := regexp.MustCompile(`(?m)^\s*#.*$`).ReplaceAllString(deployed(t, "deploy/nginx.conf"), "")
	format := regexp.MustCompile(`log_format (\w+) '([^;]*)';`).FindStringSubmatch(conf)
	logs := regexp.MustCompile(`access_log [^;]*;`).FindAllString(conf, -1)
	if format == nil || len(logs) == 0 {
		t.Fatalf("log_format %q, access_log %q", format, logs)
	}
	if got := regexp.MustCompile(`\$(request|request_uri|args|arg_\w+|query_string|http_referer)\b`).
		FindString(format[2]); got != "" {
		t.Errorf("a line of the log has %s", got)
	}
	for _, log := range logs {
		if !strings.HasSuffix(log, " "+format[1]+";") {
			t.Errorf("%s is not in the format %s", log, format[1])
		}
	}
	if !regexp.MustCompile(`\berror_log \S+ (crit|alert|emerg);`).MatchString(conf) {
		t.Error("what nginx writes about lesser errors holds whole requests")
	}
}

// Each node gets its own keys and no others; the authority's key is on none of them.
func TestEachNodeGetsOnlyItsOwnKeys(t *testing.T) {
	mounted := map[string]string{} // folder of keys → service
	nodes := 0
	for _, doc := range documents(t, "../../deploy/compose.yaml") {
		for name, service := range doc["services"].(map[string]any) {
			s := service.(map[string]any)
			env, _ := s["environment"].(map[string]any)
			if env["CASTELLAN_CLUSTER_GOSSIP_ADDR"] == nil {
				continue
			}
			nodes++
			for _, v := range s["volumes"].([]any) {
				from, to, _ := strings.Cut(v.(string), ":")
				switch own := strings.HasPrefix(from, "./keys/node-"); {
				case from == "./keys", from == "./keys/", from == "./deploy/keys", strings.Contains(from, "ca.key"):
					t.Errorf("%s has the keys of all: %s", name, v)
				case own && mounted[from] != "":
					t.Errorf("%s and %s have the same keys", name, mounted[from])
				case own && to != "/keys:ro":
					t.Errorf("%s: %s", name, v)
				case own:
					mounted[from] = name
				}
			}
		}
	}
	if nodes < 3 || len(mounted) != nodes {
		t.Errorf("%d nodes have keys: %v", nodes, mounted)
	}
	for _, line := range strings.Split(deployed(t, "deploy/kubernetes/castellan.yaml"), "\n") {
		if code, _, _ := strings.Cut(line, "#"); strings.Contains(code, "ca.key") {
			t.Errorf("the manifest has %s", line)
		}
	}
	storetest.Contains(t, deployed(t, "Dockerfile"), "mkdir -m 700 /out/data\n", "Dockerfile")
}

// commands returns the code blocks of a page for operators in docs, or of one of its sections ("PAGE#SECTION"). changes
// replace texts, as an operator does.
func commands(t *testing.T, page string, changes ...string) (blocks []string) {
	t.Helper()
	page, section, _ := strings.Cut(page, "#")
	text := deployed(t, "docs/"+page+".md")
	if section != "" {
		_, text, _ = strings.Cut(text, "\n## "+section+"\n")
		text, _, _ = strings.Cut(text, "\n## ")
	}
	text = strings.NewReplacer(changes...).Replace(text)
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(text, -1) {
		blocks = append(blocks, block[1])
	}
	if len(blocks) == 0 {
		t.Fatalf("%s has no commands", page)
	}
	return blocks
}

// succeeds runs blocks of commands in order, in a folder.
func succeeds(t *testing.T, s *blackbox.Site, folder string, blocks ...string) {
	t.Helper()
	if got := s.Shell(folder, strings.Join(blocks, "")); got.Code != 0 {
		t.Errorf("exit %d: %s%s", got.Code, got.Out, got.ErrOut)
	}
}

// The commands of the pages for a running service succeed beside it. The backup that they make is restored as its page
// says.
func TestCommandsOfOperatorsPages(t *testing.T) {
	t.Parallel()
	s, folder := blackbox.NewSite(t, "sqlite"), t.TempDir()
	account := s.AddUser("user")
	s.Start()
	for _, page := range []string{"operations/watch", "operations/secure", "operations/repair"} {
		succeeds(t, s, folder, commands(t, page, "ACCOUNT", account.ID)...)
	}
	blocks := commands(t, "backup", "/backup/", folder+"/")
	succeeds(t, s, folder, blocks[0])
	wallet := []byte("withdrawalId,externalId,state,txId\n")
	storetest.Must(t, os.WriteFile(filepath.Join(folder, "wallet.csv"), wallet, 0o600))
	place := blackbox.NewSite(t, "sqlite").Empty().Set("KEYS_MASTER_FILE=" + filepath.Join(s.Dir, masterFile))
	succeeds(t, place, folder, blocks[1:]...)
}

// The commands of the page of installation start a service in production mode and create its first administrator.
func TestCommandsOfInstallation(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := blackbox.NewSite(t, "sqlite").Production().Set("HTTP_ADDR="+porttest.Free(t), "DATABASE_URL=")
	succeeds(t, s, folder, slices.Concat([]string{"read() { PASSWORD='correct horse battery staple 1'; }\n"},
		commands(t, "operations/install", "/etc/", folder+"/etc/", "/var/lib/", folder+"/lib/"))...)
	storetest.Must(t, storetest.Err(os.Stat(folder+"/lib/castellan/castellan.db")))
}

func TestCommandsOfGrowingAndSizing(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "postgres")
	s.AddUser("user") // creates the tables
	succeeds(t, s, t.TempDir(), slices.Concat(commands(t, "operations/grow"), commands(t, "operations/size"))...)
}

// doctorOutput is the output of castellan doctor --json, and the data of GET /admin/setup.
type doctorOutput struct {
	Mode      string
	CheckedAt *string
	Findings  []struct{ Key, Severity, State, Effect, Mend string }
}

func (o doctorOutput) keys(severity string) (keys []string) {
	for _, f := range o.Findings {
		if f.Severity == severity {
			keys = append(keys, f.Key)
		}
	}
	return keys
}

// The command checks a missing, a migrated and a serving database, writes nothing, and fails in production
// mode only. The endpoint and the start's log show the same findings.
func TestDoctorReportsFindings(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		s.Empty()
		development := s.Command("", "doctor")
		if development.Code != 0 || !strings.HasPrefix(development.Out, "dev: control off (true), ") {
			t.Errorf("in development mode: exit %d, %s%s", development.Code, development.Out, development.ErrOut)
		}
		s.Production()
		doctor := func() (o doctorOutput) {
			t.Helper()
			got := s.Command("", "doctor", "--json")
			if err := json.Unmarshal([]byte(got.Out), &o); err != nil || o.Mode != "production" || o.CheckedAt == nil {
				t.Fatalf("%v, %s%s", err, got.Out, got.ErrOut)
			}
			if got.Code != 1 || !strings.Contains(got.ErrOut, "controls that are off") {
				t.Errorf("exit %d, %s", got.Code, got.ErrOut)
			}
			return o
		}
		first := doctor()
		lacks := map[string]string{"sqlite": "database.url", "postgres": "database schema"}[s.Kind]
		if !slices.Contains(first.keys("fault"), lacks) {
			t.Errorf("before the first start: faults %q, want %s", first.keys("fault"), lacks)
		}
		if _, err := os.Stat(s.Dir); err == nil && s.Kind == "sqlite" {
			t.Error("the data folder was made")
		}
		if s.Kind == "postgres" {
			if n := s.Count("information_schema.tables WHERE table_schema = 'public'"); n > 0 {
				t.Errorf("%d tables were made", n)
			}
		}
		n := s.Start()
		running := doctor()
		for _, key := range []string{"TREASURY", "WITHDRAWAL_FEE", "WITHDRAWAL_MINIMUM", "mail.host", "sms.url"} {
			if !slices.Contains(running.keys("feature"), key) {
				t.Errorf("%s is not named: %q", key, running.keys("feature"))
			}
		}
		storetest.Same(t, running.keys("fault"), []string{"money policy groups"}, "faults of a running service")
		n.Stop()
		log := n.Log()
		for _, f := range running.Findings {
			level := map[string]string{"control": "WARN", "feature": "INFO"}[f.Severity]
			if level == "" || strings.HasPrefix(f.Key, "database ") { // a start makes no live checks
				continue
			}
			if strings.Count(log, "level="+level+" msg=setup key="+logged(f.Key)+" severity="+f.Severity) < 1 {
				t.Errorf("the log has no line of %s at level %s", f.Key, level)
			}
		}
	})
}

// logged is a value as the log writes it.
func logged(text string) string {
	if strings.Contains(text, " ") {
		return `"` + text + `"`
	}
	return text
}
