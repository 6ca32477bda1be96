package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"castellan/domain/kit/storetest"
)

const canary = "hunter2"

// canarySecret holds the canary in a valid webhook secret.
const canarySecret = "whsec_" + canary + canary + canary + canary + canary + canary

var secretEnv = []string{
	"CASTELLAN_DATABASE_URL=postgres://svc:" + canary + "@db:5432/castellan?sslmode=verify-full&sslpassword=" + canary +
		"&options=x" + canary,
	"CASTELLAN_CORPORATE_DEFAULT_PASSWORD=" + canary,
	"CASTELLAN_MAIL_PASSWORD=" + canary, "CASTELLAN_SMS_PASSWORD=" + canary,
	"CASTELLAN_SMS_URL=https://gw.example/send?key=" + canary,
	"CASTELLAN_PUSH_WEBHOOK_SECRET=" + canarySecret, "CASTELLAN_SMS_PARAMS=to={{to}},key=" + canary,
	"CASTELLAN_SMS_HEADERS=Authorization=Bearer " + canary,
}

const busyFile = `
http:
  addr: 0.0.0.0:443
  public_url: https://id.example.com
  trusted_proxies: [10.0.0.0/8, "::1"]
  cors_origins: [https://app.example.com]
tenant: {id: acme}
mfa: {guarded: {POST /b: B2, POST /a: A1}}
limits: {country_per_day: {90: 5000}, reset_ip_window: 1h30m}
mail: {host: smtp.example.com, from: no-reply@example.com, from_name: 'Ä "quoted" \ : # & * 🙂', username: mailer}
sms: {username: gate, sender: CASTELLAN, success_codes: [200, 202], success_field: a.0.b, success_values: ['0', ok]}
push: {hosts: [fcm.googleapis.com, '*.push.apple.com']}
log: {level: warn, format: json}
`

func TestDescribedDefaultIsTheDefault(t *testing.T) {
	c := storetest.Value(Load(write(t, Default().Describe()), nil))(t)
	same(t, c, Default().Resolved())
}

// TestDescribeRoundTrip loads the output of Describe, with the secrets supplied by their variables.
func TestDescribeRoundTrip(t *testing.T) {
	for name, c := range map[string]Config{
		"busy": load(t, busyFile, secretEnv...),
		"dev":  load(t, "dev: true\nlimits: {enabled: false}\nmfa: {exec_wait: 1500ms}\n"),
	} {
		env := secretEnv
		if name == "dev" {
			env = nil
		}
		again, err := Load(write(t, c.Describe()), env)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, c.Describe())
		}
		same(t, again, c)
	}
}

// same compares two configurations except for the origins of their values; an empty list equals none.
func same(t *testing.T, got, want Config) {
	t.Helper()
	for _, e := range table {
		g, w := reflect.ValueOf(e.field(&got)).Elem(), reflect.ValueOf(e.field(&want)).Elem()
		if k := g.Kind(); (k == reflect.Slice || k == reflect.Map) && g.Len() == 0 && w.Len() == 0 {
			continue
		}
		if !reflect.DeepEqual(g.Interface(), w.Interface()) {
			t.Errorf("%s = %#v, want %#v", e.key, g, w)
		}
	}
}

func TestDescribeNamesEverything(t *testing.T) {
	text := load(t, busyFile, secretEnv...).Describe()
	for _, e := range table {
		for _, want := range []string{e.doc, "# " + e.env + " (", e.name + ": "} {
			storetest.Contains(t, text, want, e.key)
		}
	}
	for _, want := range []string{
		`  addr: "0.0.0.0:443" # CASTELLAN_HTTP_ADDR (file)`,
		`  reset_ip_window: 1h30m # CASTELLAN_LIMITS_RESET_IP_WINDOW (file)`,
		`  challenge_ttl: 10m # CASTELLAN_MFA_CHALLENGE_TTL (default)`,
		`  guarded: {"POST /a": "A1", "POST /b": "B2"} # CASTELLAN_MFA_GUARDED (file)`,
		`  # url: "postgres://svc:(hidden)@db:5432/castellan?sslmode=verify-full&sslpassword=(hidden)` +
			`&options=(hidden)" # CASTELLAN_DATABASE_URL (env)`,
		`  # password: (hidden) # CASTELLAN_MAIL_PASSWORD (env)`,
		`  # webhook_secret: (hidden) # CASTELLAN_PUSH_WEBHOOK_SECRET (env)`,
		`  contact: "https://id.example.com" # CASTELLAN_PUSH_CONTACT (default)`,
		`  hosts: ["fcm.googleapis.com", "*.push.apple.com"] # CASTELLAN_PUSH_HOSTS (file)`,
		`  # params: {"key": (hidden), "to": (hidden)} # CASTELLAN_SMS_PARAMS (env)`,
		`  # url: "https://gw.example/send?key=(hidden)" # CASTELLAN_SMS_URL (env)`,
		`  # body: "" # CASTELLAN_SMS_BODY (default)`,
		`[5m to 24h; in development mode from 1s]`,
		`[empty | twilio]`,
	} {
		storetest.Contains(t, text, want+"\n")
	}
}

func TestShowURL(t *testing.T) {
	for raw, want := range map[string]string{
		"sqlite:a/b@c.db":                           "sqlite:a/b@c.db",
		"postgres://h/d":                            "postgres://h/d",
		"postgres://u@h1,h2:5432/d":                 "postgres://u@h1,h2:5432/d",
		"postgres://u:p@h/d":                        "postgres://u:(hidden)@h/d",
		"postgres://u:p@q@h/d":                      "postgres://u:(hidden)@h/d",
		"postgres://u:@h":                           "postgres://u:(hidden)@h",
		"postgres://u:1/p@h/d":                      "postgres://(hidden)",
		"postgres://u:1?p@h/d":                      "postgres://(hidden)",
		"postgres://u:1#p@h/d":                      "postgres://(hidden)",
		"postgres://h/d?PassWord=p&sslmode=disable": "postgres://h/d?PassWord=(hidden)&sslmode=disable",
		"postgres://h/d?%70assword=p":               "postgres://h/d?%70assword=(hidden)",
		"host=h password=p":                         "(hidden)",
	} {
		got, whole := showURL(raw, true, harmless)
		if got != want || whole != (raw == want) {
			t.Errorf("%s: %s, %v", raw, got, whole)
		}
	}
	if d := (Database{URL: "postgres://u:p@h/d"}); d.Redacted() != "postgres://u:(hidden)@h/d" {
		t.Error(d.Redacted())
	}
}

// TestSecretsNeverShow prints and encodes a configuration full of secrets in every way that exists.
func TestSecretsNeverShow(t *testing.T) {
	c := load(t, busyFile, secretEnv...)
	var log bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(h).Info("config", "config", c, "password", c.Mail.Password, "params", c.SMS.Params, "pointer", &c)
	}
	asJSON := storetest.Value(json.Marshal(c))(t)
	asYAML := storetest.Value(yaml.Marshal(c))(t)
	shown := []string{log.String(), string(asJSON), string(asYAML), c.Describe(), c.Database.Redacted(), fmt.Sprint(c),
		fmt.Sprintln(&c), c.Hide(canary), c.Hide("a " + canary + " b")}
	for _, key := range AllKeys() {
		shown = append(shown, c.Shown(key))
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%b", "%t", "%c", "%U", "%e", "%10s",
		"%T"} {
		shown = append(shown, fmt.Sprintf(verb, c.Mail.Password), fmt.Sprintf(verb, &c.Mail.Password), fmt.Sprintf(verb, c),
			fmt.Sprintf(verb, c.SMS.Params))
	}
	for _, text := range shown {
		for _, verb := range []string{"%s", "%x", "%X"} {
			storetest.Lacks(t, text, fmt.Sprintf(verb, canary))
		}
	}
	if !strings.Contains(log.String(), hidden) || c.Mail.Password.Reveal() != canary {
		t.Error("nothing was hidden, or Reveal hides too")
	}
	if Secret("").String() != "" || Secret("x").String() != hidden || fmt.Sprintf("%#v", Secret("x")) != `"(hidden)"` ||
		Secrets(nil).Reveal() != nil {
		t.Error("spelling of redaction")
	}
}
