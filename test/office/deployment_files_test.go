package office

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
)

func deployed(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile("../../" + file)
	storetest.Must(t, err)
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
