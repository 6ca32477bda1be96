package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"castellan/cmd/app/doctor"
	"castellan/domain/kit/setup"
)

type doctorCmd struct {
	JSON bool `help:"Print the findings as JSON." name:"json"`
}

func (doctorCmd) Help() string {
	return `Prints one line for each finding: KEY: state, effect, remedy. A finding is one of

  control off   a protection is off; in production mode the exit status is then 1
  fault         a live check failed
  feature off   a setting or a parameter is empty, and a feature does not work
  accepted      one of the two is accepted by doctor.accepted, which has the reason
  ok            a live check passed

Live checks contact the configured services. They send no mail and no SMS, but they
write, read and delete one file. For the SMS gateway and the identity register, they
check only the connection. They also check certificates, clock, disk and database. Each
check takes five seconds at most. The database is opened read-only and not migrated; the
service can run. No secret is printed.

  castellan doctor --json | jq -r '.findings[] | select(.severity == "control").key'`
}

func (c doctorCmd) Run(e *env) error {
	progress, clear := progressLine(e.err)
	r := doctor.Examine(e.ctx, e.cfg, progress)
	clear()
	if e.ctx.Err() != nil {
		return e.ctx.Err()
	}
	if err := c.print(e.out, r); err != nil {
		return err
	}
	if n := r.Count(setup.Control); n > 0 && r.Production {
		return fmt.Errorf("controls that are off: %d; enable them, or accept them with doctor.accepted", n)
	}
	return nil
}

func (c doctorCmd) print(out io.Writer, r setup.Report) error {
	if !c.JSON {
		for _, f := range r.Findings {
			if _, err := fmt.Fprintln(out, f); err != nil {
				return err
			}
		}
		return nil
	}
	mode := "development"
	if r.Production {
		mode = "production"
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(map[string]any{"mode": mode, "checkedAt": r.CheckedAt.UTC(), "findings": r.Findings})
}

// progressColumns is the width of the progress line.
const progressColumns = 78

// progressLine shows the running checks on a line of a terminal; elsewhere it writes nothing.
func progressLine(to io.Writer) (show func(waiting []string), clear func()) {
	f, ok := to.(*os.File)
	if !ok {
		return nil, func() {}
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nil, func() {}
	}
	line := func(text string) { fmt.Fprintf(f, "\r%-*.*s", progressColumns, progressColumns, text) }
	show = func(waiting []string) { line("checking " + strings.Join(waiting, ", ")) }
	return show, func() { line(""); fmt.Fprint(f, "\r") }
}

type healthCmd struct {
	Live    bool          `help:"Ask only whether the process lives, not whether it can serve."`
	Timeout time.Duration `help:"Give up after this time." default:"3s"`
}

func (healthCmd) Help() string {
	return `Asks the service with these settings on this machine, at metrics.addr if it is set, else
at http.addr: GET /health/ready, or /health/live with --live. Prints the answer. Exit
status 0: it serves; 1: it does not. For HEALTHCHECK of a container and for probes
without curl.`
}

func (c healthCmd) Run(e *env) error {
	addr, base := e.cfg.Metrics.Addr, ""
	if addr == "" {
		addr, base = e.cfg.HTTP.Addr, e.cfg.HTTP.BasePath
	}
	path := "/health/ready"
	if c.Live {
		path = "/health/live"
	}
	url := "http://" + local(addr) + base + path
	client := http.Client{Timeout: c.Timeout, Transport: &http.Transport{}} // no proxy
	r, err := http.NewRequestWithContext(e.ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("ask the service: %w", err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
	if err != nil {
		return fmt.Errorf("ask the service: %w", err)
	}
	text := strings.TrimSpace(string(body))
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s %s", url, answer.Status, text)
	}
	return e.print(nil, text)
}

// local is the address at which this machine reaches its own listener.
func local(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	switch {
	case err != nil:
		return addr
	case host == "" || host == "0.0.0.0":
		host = "127.0.0.1"
	case host == "::":
		host = "::1"
	}
	return net.JoinHostPort(host, port)
}
