package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"castellan/config"
	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

func TestMain(m *testing.M) { blackbox.Drive(m, map[string]func(){idleRole: idle}) }

// If the log is JSON, the error that ends the service is a record of it.
func TestFatalErrorsAreJSONInAJSONLog(t *testing.T) {
	for _, setting := range []string{"HTTP_ADDR=192.0.2.1:1", "MFA_MAX_OPEN=x"} {
		code, _, log := command(t, []string{"DEV=true", "DATA_DIR=" + t.TempDir(), "LOG_FORMAT=json", setting}, "serve")
		var record struct{ Level, Err string }
		if err := json.Unmarshal([]byte(log), &record); err != nil || code == 0 || record.Level != "ERROR" ||
			record.Err == "" {
			t.Errorf("%s: exit %d, %v: %s", setting, code, err, log)
		}
	}
}

// A duration in the log has a unit in both formats.
func TestLoggedDurationsHaveAUnit(t *testing.T) {
	for format, want := range map[string]string{"text": "after=1.5s", "json": `"after":"1.5s"`} {
		var log strings.Builder
		logger(config.Config{Log: config.Log{Format: format}}, &log).Info("x", "after", 1500*time.Millisecond)
		storetest.Contains(t, log.String(), want, format)
	}
}

// A command that was interrupted has failed, and says so. A service that was stopped while it started has not.
func TestInterruptedCommandsFail(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	for command, want := range map[string]int{"migrate": 1, "setup-link": 1, "serve": 0} {
		var out, log strings.Builder
		environ := []string{"CASTELLAN_DATA_DIR=" + t.TempDir(), "CASTELLAN_HTTP_ADDR=127.0.0.1:0"}
		code := run(ctx, strings.Fields(command), environ, nil, &out, &log)
		if code != want || want != 0 && !strings.Contains(log.String(), "canceled") {
			t.Errorf("%s: exit %d, want %d: %s", command, code, want, log.String())
		}
	}
}
