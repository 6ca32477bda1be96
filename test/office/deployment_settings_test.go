package office

import (
	"bytes"
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"castellan/config"
	"castellan/domain/kit/storetest"
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
	if !strings.Contains(deployed(t, "Dockerfile"), "mkdir -m 700 /out/data\n") {
		t.Error("the image's /data is open to others")
	}
}
