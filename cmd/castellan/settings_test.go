package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
)

// command runs castellan in this process, with settings without their prefix and perhaps with standard input.
func command(t *testing.T, settings []string, args string, stdin ...string) (code int, out, errOut string) {
	t.Helper()
	environ := make([]string, len(settings))
	for i, s := range settings {
		environ[i] = "CASTELLAN_" + s
	}
	var o, e strings.Builder
	code = run(t.Context(), strings.Fields(args), environ, strings.NewReader(strings.Join(stdin, "")), &o, &e)
	return code, o.String(), e.String()
}

// Every command prints its help without any settings.
func TestHelpNeedsNoSettings(t *testing.T) {
	for _, c := range []struct {
		args  string
		wants []string
	}{
		{"", []string{"serve", "migrate", "config", "doctor", "version", "user add", "--config", "CASTELLAN_"}},
		{"serve", []string{"SIGTERM", "1012", "CASTELLAN_DATABASE_URL"}},
		{"user", []string{"add", "unlock", "allow-ip", "clear-geofilter"}},
		{"user import", []string{"<file>", "--format", "keycloak", "--dry-run", "line N: reason", "move-in.md", "continues"}},
		{"device enroll", []string{"--server", "CASTELLAN_DEVICE_TOKEN", "--key", "0600"}},
	} {
		code, out, errOut := command(t, nil, c.args+" --help")
		if code != 0 || errOut != "" || !strings.Contains(out, "Usage: castellan") {
			t.Errorf("%s --help: exit %d, %s%s", c.args, code, out, errOut)
		}
		for _, want := range c.wants {
			storetest.Contains(t, out, want, c.args, "--help")
		}
	}
}

// An invalid command line or invalid settings exit with 2. All errors are listed at once, before anything
// opens.
func TestInvalidSettingsAreAllListed(t *testing.T) {
	yaml := filepath.Join(t.TempDir(), "castellan.yaml")
	storetest.Must(t, os.WriteFile(yaml, []byte("http:\n  adr: 127.0.0.1:1\nmfa:\n  max_open: many\n"), 0o600))
	for _, c := range []struct {
		name     string
		settings []string
		args     string
		wants    []string
	}{
		{"variables", []string{"HTTP_ADRESS=x", "LOG_LEVEL=loud"}, "serve", []string{"2 faults", "HTTP_ADRESS", "log.level"}},
		{"file", nil, "--config " + yaml + " serve", []string{"2 faults", "castellan.yaml:2", "castellan.yaml:4"}},
		{"a secret that is wrong",
			[]string{"DATABASE_URL=mysql://u:hunter2@h/x",
				"SMS_URL=http://gateway.example.test/?key=hunter2", "RATES_URL=http://rates.example.test/?key=hunter2"}, "serve",
			[]string{"database.url", "sms.url", "rates", "loopback"}},
		{"no command", nil, "sing", []string{"sing", "castellan --help"}},
		{"no flag", nil, "serve --loud", []string{"--loud"}},
		{"no role", nil, "user add --email a@example.test --country-code 90 --phone 5321234567 --password-stdin --role king",
			[]string{"--role", "admin"}},
		{"no file", nil, "--config /no/such/file serve", []string{"/no/such/file"}},
	} {
		dir := filepath.Join(t.TempDir(), "data")
		code, out, errOut := command(t, append([]string{"DEV=true", "DATA_DIR=" + dir}, c.settings...), c.args)
		storetest.Equal(t, code, 2, c.name, "exit", "2", errOut)
		for _, want := range c.wants {
			storetest.Contains(t, errOut, want, c.name)
		}
		storetest.Lacks(t, out+errOut, "hunter2", c.name)
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: something was opened first", c.name)
		}
	}
}

// The effective settings are listed with their sources. The version needs no valid settings.
func TestConfigCommandShowsSources(t *testing.T) {
	code, out, errOut := command(t, []string{"DEV=true", "MFA_EXEC_WAIT=4s"}, "config")
	if code != 0 || errOut != "" || !strings.Contains(out, "exec_wait: 4s # CASTELLAN_MFA_EXEC_WAIT (env)") {
		t.Errorf("exit %d, %s%s", code, errOut, out)
	}
	for _, setting := range []string{"DEV=true", "LOG_LEVEL=loud"} {
		if code, out, errOut := command(t, []string{setting}, "version"); code != 0 || !strings.HasPrefix(out, "castellan ") {
			t.Errorf("version with %s: exit %d, %s%s", setting, code, out, errOut)
		}
	}
}
