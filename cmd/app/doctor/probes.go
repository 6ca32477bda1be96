package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"castellan/cmd/app/adapters"
	"castellan/config"
	"castellan/domain/kit/setup"
	"castellan/domain/kit/sorting"
	"castellan/outbound/fetch"
	"castellan/outbound/geoip"
)

// probeTime bounds one live check.
const probeTime = 5 * time.Second

// probe is one live check; run returns the good state. An error is a fault, unless it is a shortcoming.
type probe struct {
	key          string // a setting, or the name of the check
	effect, mend string // of a fault
	run          func(ctx context.Context) (state string, err error)
}

// shortcoming is the error of a check that passed but found a control or a feature off. The probe gives it its key.
type shortcoming setup.Finding

func (s shortcoming) Error() string { return s.State }

// runProbes runs the checks in parallel, each for probeTime at most, and returns their findings in order. A check that
// does not end in time is abandoned.
func runProbes(ctx context.Context, cfg config.Config, all []probe, progress func([]string)) []setup.Finding {
	found := make([]setup.Finding, len(all))
	waiting := map[int]bool{}
	var mu sync.Mutex
	tell := func(change func()) {
		mu.Lock()
		defer mu.Unlock()
		change()
		if progress == nil {
			return
		}
		var names []string
		for _, i := range slices.Sorted(maps.Keys(waiting)) {
			names = append(names, all[i].key)
		}
		progress(names)
	}
	tell(func() {
		for i := range all {
			waiting[i] = true
		}
	})
	var done sync.WaitGroup
	for i, p := range all {
		done.Go(func() {
			f := p.find(ctx)
			f.State = cfg.Hide(f.State)
			tell(func() { found[i] = f; delete(waiting, i) })
		})
	}
	done.Wait()
	return found
}

// find runs one check.
func (p probe) find(ctx context.Context) setup.Finding {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	type outcome struct {
		state string
		err   error
	}
	ended := make(chan outcome, 1)
	go func() {
		state, err := p.run(ctx)
		ended <- outcome{state, err}
	}()
	var o outcome
	select {
	case o = <-ended:
	case <-ctx.Done():
		o.err = fmt.Errorf("no answer in %v", probeTime)
	}
	if o.err == nil {
		return setup.Finding{Key: p.key, Severity: setup.OK, State: o.state}
	}
	if s := (shortcoming{}); errors.As(o.err, &s) {
		s.Key = p.key
		return setup.Finding(s)
	}
	return setup.Finding{Key: p.key, Severity: setup.Fault, State: oneLine(o.err), Effect: p.effect, Mend: p.mend}
}

// probes are the checks of this machine and of all configured services.
func (d Doctor) probes() []probe {
	return slices.Concat(d.stored(), d.machine(), d.outside())
}

// outside are the checks of other services.
func (d Doctor) outside() (all []probe) {
	c := d.cfg
	add := func(set bool, p probe) {
		if set {
			all = append(all, p)
		}
	}
	connects := func(to, caFile string) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) { return connect(ctx, to, caFile) }
	}
	add(c.Mail.Configured(), probe{"mail.host", "no mail is sent", "fix the relay, or the settings mail.*",
		func(ctx context.Context) (string, error) {
			m, err := adapters.Mail(c)
			if err != nil {
				return "", err
			}
			defer m.Close()
			return "the relay answers, encryption " + c.Mail.TLS, m.Probe(ctx)
		}})
	add(c.SMS.URL != "", probe{"sms.url", "no SMS is sent", "fix the gateway, or the settings sms.*",
		connects(c.SMS.URL.Reveal(), "")})
	add(c.KYC.IdentityURL != "", probe{"kyc.identity_url", "identity numbers cannot be verified",
		"fix the connection to the register, or kyc.identity_url", connects(c.KYC.IdentityURL, c.KYC.IdentityCAFile)})
	add(c.Audit.AnchorURL != "", probe{"audit.anchor_url", "audit checkpoints are published only in the " +
		"log", "fix the receiver, or audit.anchor_url", connects(c.Audit.AnchorURL, c.Audit.AnchorCAFile)})
	add(c.Accounting.URL != "", probe{"accounting.url", "journals are not delivered",
		"fix the receiver, or accounting.url", connects(c.Accounting.URL, c.Accounting.CAFile)})
	add(c.Tracing.Endpoint != "", probe{"tracing.endpoint", "traces are dropped",
		"fix the collector, or tracing.endpoint", connects(c.Tracing.Endpoint, "")})
	add(c.Rates.URL != "", probe{"rates.url", "exchange rates become outdated",
		"fix the provider, or the settings rates.*",
		func(ctx context.Context) (string, error) {
			p, err := adapters.Rates(c.Rates)
			if err != nil {
				return "", err
			}
			quotes, _, err := p.Fetch(ctx)
			return fmt.Sprintf("%d rates", len(quotes)), err
		}})
	all = append(all, balanceProbes(c.Providers)...)
	add(c.Geo.MMDBFile != "", probe{"geo.mmdb_file", "the service does not start", "provide an intact file",
		func(context.Context) (string, error) {
			info, err := os.Stat(c.Geo.MMDBFile)
			if err != nil {
				return "", err
			}
			_, err = geoip.Open(c.Geo.MMDBFile)
			return "readable, of " + info.ModTime().UTC().Format(time.DateOnly), err
		}})
	return all
}

// balanceProbes reads each account at another platform once.
func balanceProbes(c config.Providers) (all []probe) {
	sources, err := adapters.Balances(c)
	if err != nil {
		return []probe{{"providers.accounts", "balances at other platforms are not read",
			"fix the settings providers.*",
			func(context.Context) (string, error) { return "", err }}}
	}
	for n, source := range sources {
		key := "providers.accounts"
		if n.Account == "" {
			key = "providers.files"
		}
		name := strings.TrimSuffix(n.String(), "/")
		all = append(all, probe{key, "the balances of " + name + " are not read", "fix the settings providers.*",
			func(ctx context.Context) (string, error) {
				accounts, err := source.Fetch(ctx)
				if err != nil {
					return "", fmt.Errorf("%s: %w", name, err)
				}
				return fmt.Sprintf("%s is read, %d accounts", name, len(accounts)), nil
			}})
	}
	sorting.Func(all, func(a, b probe) int { return strings.Compare(a.effect, b.effect) })
	return all
}

// connect opens a connection to the host of a URL, or to the environment's proxy in front of it. It encrypts the
// connection if the URL says so, sends no request, and closes it. Errors name the host and no other part of the URL.
func connect(ctx context.Context, to, caFile string) (state string, err error) {
	u, err := url.Parse(to)
	if err != nil || u.Hostname() == "" {
		return "", errors.New("the address is invalid")
	}
	trust := &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12}
	if trust.RootCAs, err = fetch.Roots(caFile, false); err != nil {
		return "", err
	}
	secure := u.Scheme == "https"
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: u})
	if err != nil {
		return "", errors.New("the proxy of the environment is invalid")
	}
	if proxy != nil {
		u, secure = proxy, false
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	switch {
	case proxy != nil:
		return "the proxy in front of it answers", nil
	case !secure:
		return "the host answers", nil
	}
	encrypted := tls.Client(conn, trust)
	if err := encrypted.HandshakeContext(ctx); err != nil {
		return "", err
	}
	ends := encrypted.ConnectionState().PeerCertificates[0].NotAfter
	return "the host answers, its certificate expires " + ends.UTC().Format(time.DateOnly), nil
}
