package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
)

// write writes text to a file in a new folder.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "castellan.yaml")
	storetest.Must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func load(t *testing.T, text string, env ...string) Config {
	t.Helper()
	return storetest.Value(Load(write(t, text), env))(t)
}

func TestNothingSetGivesTheDefaults(t *testing.T) {
	c := storetest.Value(Load("", nil))(t)
	if c.HTTP.Addr != "127.0.0.1:8080" || c.HTTP.PublicURL != "http://127.0.0.1:8080" || c.Dev {
		t.Errorf("http = %+v, dev = %v", c.HTTP, c.Dev)
	}
	if path, ok := c.Database.SQLitePath(); !ok || path != filepath.Join("data", "castellan.db") {
		t.Errorf("database = %q, %v", path, ok)
	}
	if c.Keys.MasterFile != filepath.Join("data", "master.key") || c.Password.HashSlots < 1 || c.Mail.Port != 587 {
		t.Errorf("derived: %q %d %d", c.Keys.MasterFile, c.Password.HashSlots, c.Mail.Port)
	}
	if c.MFA.ChallengeTTL != 600*time.Second || c.MFA.PAuthGrace != 120*time.Second || c.MFA.ExecWait != 10*time.Second {
		t.Errorf("mfa = %+v", c.MFA)
	}
	for _, e := range table {
		storetest.Equal(t, c.Source(e.key), FromDefault, e.key, "comes from")
	}
}

func TestEnvironmentWinsOverFileWinsOverDefault(t *testing.T) {
	c := load(t, "http:\n  addr: 127.0.0.1:9001\n  read_timeout: 7s\nmfa:\n  max_open: 3\n",
		"CASTELLAN_HTTP_ADDR=127.0.0.1:9002", "PATH=/bin", "CASTELLAN_MFA_CHALLENGE_TTL=90s")
	if c.HTTP.Addr != "127.0.0.1:9002" || c.HTTP.ReadTimeout != 7*time.Second || c.HTTP.IdleTimeout != time.Minute ||
		c.MFA.MaxOpen != 3 || c.MFA.ChallengeTTL != 90*time.Second {
		t.Errorf("http = %+v, mfa = %+v", c.HTTP, c.MFA)
	}
	for key, want := range map[string]Source{"http.addr": FromEnv, "http.read_timeout": FromFile,
		"http.idle_timeout": FromDefault} {
		storetest.Equal(t, c.Source(key), want, "source of", key, "=")
	}
}

// Lists and maps of variables are read in their normal form.
func TestVariablesWithSeveralValues(t *testing.T) {
	c := load(t, "", "CASTELLAN_HTTP_TRUSTED_PROXIES=10.0.0.0/8, 192.0.2.7,::1,::ffff:198.51.100.0/120,2001:db8::5/32",
		"CASTELLAN_MFA_GUARDED=POST /a=ACTION,PUT  /b=OTHER", "CASTELLAN_LIMITS_COUNTRY_PER_DAY=90=5000,1=20",
		"CASTELLAN_HTTP_PUBLIC_URL=https://id.example.com/")
	for key, want := range map[string]string{"http.public_url": `"https://id.example.com"`,
		"http.trusted_proxies":   `["10.0.0.0/8", "192.0.2.7/32", "::1/128", "198.51.100.0/24", "2001:db8::/32"]`,
		"mfa.guarded":            `{"POST /a": "ACTION", "PUT /b": "OTHER"}`,
		"limits.country_per_day": `{"1": 20, "90": 5000}`} {
		storetest.Equal(t, c.Shown(key), want, key)
	}
}

// TestEveryKeyFromBothLayers sets each key alone, in the file and by its variable, to a value that differs from the
// default, and reads it back.
func TestEveryKeyFromBothLayers(t *testing.T) {
	samples := map[string]string{
		"*bool": "true", "*string": "sample", "*config.Secret": "s3cret", "*int": "64", "*float64": "0.25",
		"*time.Duration": "7m",
		"*[]string":      "https://a.example", "*[]int": "202", "*[]netip.Prefix": "192.0.2.0/24",
		"*map[string]string": "POST /a=ACTION", "*map[string]int": "90=5", "*config.Secrets": "X-Key=s3cret",
	}
	for _, e := range table {
		sample, ok := samples[reflect.TypeOf(e.field(new(Config))).String()]
		if !ok {
			t.Fatalf("no sample for %s", e.kind)
		}
		if e.key == "limits.enabled" || e.key == "push.enabled" {
			sample = "false"
		}
		if e.key == "http.body_budget" {
			sample = "32"
		}
		check := func(layer string, l *loader) {
			if len(l.faults) > 0 {
				t.Errorf("%s by %s: %v", e.key, layer, l.faults)
				return
			}
			d := Default()
			if reflect.DeepEqual(e.field(&l.config), e.field(&d)) {
				t.Errorf("%s by %s: still the default", e.key, layer)
			}
		}
		fresh := func() *loader {
			l := &loader{config: Default(), broken: map[string]bool{}}
			l.config.origins = map[string]origin{}
			return l
		}
		env := fresh()
		env.environment([]string{e.env + "=" + sample})
		check("env", env)

		text := e.name + ": '" + sample + "'\n"
		if e.section != "" {
			text = e.section + ":\n  " + text
		}
		file := fresh()
		if !file.file(write(t, text)) {
			t.Errorf("%s: file not read", e.key)
		}
		check("file", file)
		if !reflect.DeepEqual(e.field(&env.config), e.field(&file.config)) {
			t.Errorf("%s differs between the layers", e.key)
		}
	}
}

func TestFileForms(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "---\n", "http:\n", "http: {addr: }\n", "~\n"} {
		if c := load(t, text); c.HTTP.Addr != "127.0.0.1:8080" {
			t.Errorf("%q: addr = %q", text, c.HTTP.Addr)
		}
	}
	c := load(t, `
tenant: {id: 0123}
mail: {host: localhost, from: a@example.com, username: u, password: 0777, port: 2525}
http:
  cors_origins: [HTTPS://App.Example.com:443, "http://localhost:3000"]
  trusted_proxies: &nets
    - 10.0.0.0/8
firewall: {bypass_cidrs: *nets}
mfa:
  guarded:
    POST /auth/password: PASSWORD_CHANGE
sms:
  url: http://127.0.0.1:1/send
  format: json
  body: |
    {"to": "{{to}}",
     "text": "{{text}}"}
  headers: {Authorization: Bearer abc}
  success_codes: [200, 202]
`)
	if c.Tenant.ID != "0123" || c.Mail.Password.Reveal() != "0777" || c.Mail.Port != 2525 {
		t.Errorf("digits changed: %q %q %d", c.Tenant.ID, c.Mail.Password.Reveal(), c.Mail.Port)
	}
	if want := []string{"https://app.example.com", "http://localhost:3000"}; !reflect.DeepEqual(c.HTTP.CORSOrigins, want) {
		t.Errorf("origins = %v", c.HTTP.CORSOrigins)
	}
	if !reflect.DeepEqual(c.HTTP.TrustedProxies, c.Firewall.BypassCIDRs) || len(c.Firewall.BypassCIDRs) != 1 {
		t.Errorf("alias: %v, %v", c.HTTP.TrustedProxies, c.Firewall.BypassCIDRs)
	}
	if c.MFA.Guarded["POST /auth/password"] != "PASSWORD_CHANGE" || !strings.Contains(c.SMS.Body.Reveal(), "\n") {
		t.Errorf("guarded = %v, body = %q", c.MFA.Guarded, c.SMS.Body.Reveal())
	}
	if want := map[string]string{"Authorization": "Bearer abc"}; !reflect.DeepEqual(c.SMS.Headers.Reveal(), want) ||
		!reflect.DeepEqual(c.SMS.SuccessCodes, []int{200, 202}) {
		t.Errorf("sms = %v %v", c.SMS.Headers.Reveal(), c.SMS.SuccessCodes)
	}
}

// TestEmptyVariable clears a text or list that the file sets.
func TestEmptyVariable(t *testing.T) {
	c := load(t, "metrics: {addr: '127.0.0.1:9000'}\nhttp: {cors_origins: [https://a.example]}\n",
		"CASTELLAN_METRICS_ADDR=", "CASTELLAN_HTTP_CORS_ORIGINS=")
	if c.Metrics.Addr != "" || len(c.HTTP.CORSOrigins) != 0 {
		t.Errorf("metrics = %q, origins = %v", c.Metrics.Addr, c.HTTP.CORSOrigins)
	}
}

func TestForeignVariablesAreNoFault(t *testing.T) {
	_, err := Load("", []string{
		"CASTELLAN_SERVICE_HOST=10.0.0.1", "CASTELLAN_SERVICE_PORT=80", "CASTELLAN_SERVICE_PORT_HTTP=80",
		"CASTELLAN_PORT=tcp://10.0.0.1:80",
		"CASTELLAN_PORT_80_TCP=tcp://10.0.0.1:80", "CASTELLAN_PORT_80_TCP_PROTO=tcp", "CASTELLAN_BACKUP_HOUR=3",
		"CASTELLAN_IMAGE=x", "CASTELLANX=1", "castellan_http_addr=x", "broken",
	})
	storetest.Must(t, err)
}

func TestDerivedDefaults(t *testing.T) {
	for _, tc := range []struct {
		env  []string
		want string
	}{
		{[]string{"CASTELLAN_HTTP_ADDR=0.0.0.0:80"}, "http://localhost:80"},
		{[]string{"CASTELLAN_HTTP_ADDR=:80"}, "http://localhost:80"},
		{[]string{"CASTELLAN_HTTP_ADDR=[::1]:80", "CASTELLAN_HTTP_BASE_PATH=/auth/"}, "http://[::1]:80/auth"},
	} {
		c, err := Load("", tc.env)
		if err != nil || c.HTTP.PublicURL != tc.want {
			t.Errorf("%v: %q, %v", tc.env, c.HTTP.PublicURL, err)
		}
	}
	for file, most := range map[string]int{
		"": 256, "http: {trusted_proxies: [10.0.0.0/8]}": 0, "http: {max_connections_per_ip: 0}": 0,
		"http: {trusted_proxies: [10.0.0.0/8], max_connections_per_ip: 256}": 256,
	} {
		if c := load(t, file); c.HTTP.MaxConnectionsPerIP != most {
			t.Errorf("%s: %d connections of an address", file, c.HTTP.MaxConnectionsPerIP)
		}
	}
	for tls, port := range map[string]int{"starttls": 587, "tls": 465, "none": 25} {
		if c := load(t, "mail: {tls: "+tls+"}"); c.Mail.Port != port {
			t.Errorf("%s: port %d", tls, c.Mail.Port)
		}
	}
	if c := load(t, "dev: true"); !c.Geo.AllowPrivate {
		t.Error("development mode does not allow private addresses")
	}
	if c := load(t, "dev: true\ngeo: {allow_private: false}"); c.Geo.AllowPrivate {
		t.Error("allow_private: false was ignored")
	}
	for file, want := range map[string]bool{"dev: true": true, "data_dir: x": false,
		"dev: true\nregistration: {enabled: false}": false, "registration: {enabled: true}": true} {
		if c := load(t, file); c.Registration.Enabled != want {
			t.Errorf("%q: registration.enabled is %v", file, c.Registration.Enabled)
		}
	}
	usual, raised := Default().Limits, Default().Limits
	raised.ResetPerPhone, raised.ResetPerIP, raised.UserPerDay, raised.IPPerHour = 500, 3000, 6000, 20000
	raised.DestinationPerHour, raised.DestinationPerDay = 2000, 5000
	own, day := raised, raised
	own.ResetPerPhone, own.UserPerDay = 5, 70
	day.DestinationPerHour, day.DestinationPerDay = 60, 60
	for file, want := range map[string]Limits{"data_dir: x": usual, "dev: true": raised,
		"dev: true\nlimits: {reset_per_phone: 5, user_per_day: 70}": own,
		"dev: true\nlimits: {destination_per_day: 60}":              day} {
		if c := load(t, file); !reflect.DeepEqual(c.Limits, want) || !reflect.DeepEqual(c, c.Resolved()) {
			t.Errorf("%q: limits %+v, want %+v", file, c.Limits, want)
		}
	}
	if c := load(t, "data_dir: x"); c.Files.Folder != filepath.Join("x", "files") {
		t.Errorf("files in %s", c.Files.Folder)
	}
	host, bucket, secure := load(t, "files: {s3_url: 'https://s3.example.com:9000/castellan-files/', s3_access_key: a, "+
		"s3_secret_key: b, cdn_url: 'https://cdn.example.com/'}").Files.Bucket()
	if host != "s3.example.com:9000" || bucket != "castellan-files" || !secure {
		t.Errorf("bucket %s at %s, %t", bucket, host, secure)
	}
	made := Default()
	made.DataDir = "x"
	if c := made.Resolved(); c.faults(nil) != nil || c.Keys.MasterFile != filepath.Join("x", "master.key") ||
		!reflect.DeepEqual(c, c.Resolved()) {
		t.Errorf("by hand: %v, %q", c.faults(nil), c.Keys.MasterFile)
	}
}

// Faults of the checks are reported with the others and with their source, unless their key is already reported.
func TestFindingsOfOtherPackages(t *testing.T) {
	asked := 0
	check := func(c Config) Faults {
		asked++
		return Faults{{Key: "mail", Problem: "not again"}, {Key: "geo.mmdb_file", Problem: "is not there"}, {Key: "sms",
			Problem: "bad template"}}
	}
	_, err := Load("", []string{"CASTELLAN_MAIL_PORT=x", "CASTELLAN_GEO_MMDB_FILE=/nope"}, check)
	storetest.Equal(t, asked, 1, "times asked")
	for _, want := range []string{"mail.port (CASTELLAN_MAIL_PORT)",
		"geo.mmdb_file (CASTELLAN_GEO_MMDB_FILE): is not there", "sms: bad template"} {
		storetest.Fails(t, err, want)
	}
	storetest.Lacks(t, err.Error(), "not again")
	storetest.Must(t, storetest.Err(Load("", nil, func(Config) Faults { return nil })))
}
