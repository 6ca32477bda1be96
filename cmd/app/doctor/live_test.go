package doctor

import (
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"castellan/config"
	"castellan/domain/kit/setup"
	"castellan/domain/kit/storetest"
)

// canary is part of every secret of the tests.
const canary = "hunter2-canary"

// surroundings are all services that an installation can name, each a real server in this process.
type surroundings struct {
	settings []string
	// Effects that must not happen: a message, a request where a connection is enough, a remaining object.
	mails, requests atomic.Int64
	bucket          *s3mem.Backend
	password        string // that the mail server accepts
	stop            []func()
}

func newSurroundings(t *testing.T) *surroundings {
	t.Helper()
	s := &surroundings{bucket: s3mem.New(), password: canary}
	storetest.Must(t, s.bucket.CreateBucket("castellan-files"))
	counts := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { s.requests.Add(1) })
	answers := http.NewServeMux()
	answers.HandleFunc("/rates/"+canary, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"base":"USD","rates":{"TRY":41.7,"EUR":0.9}}`)
	})
	answers.HandleFunc("/api/v3/account", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"balances":[{"asset":"BTC","free":"1.5","locked":"0"}]}`)
	})
	tls := func(h http.Handler) (address, ca string) {
		server := httptest.NewTLSServer(h)
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.stop = append(s.stop, server.Close)
		ca = filepath.Join(t.TempDir(), "ca.pem")
		storetest.Must(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
			Bytes: server.Certificate().Raw}), 0o600))
		return server.URL, ca
	}
	silent, silentCA := tls(counts)
	asked, askedCA := tls(answers)
	files, filesCA := tls(gofakes3.New(s.bucket).Server())
	plain := httptest.NewServer(counts)
	s.stop = append(s.stop, plain.Close)
	signing := "whsec_" + strings.Repeat("hunter2canary", 4)
	s.settings = []string{
		"SMS_URL=" + plain.URL + "/send?key=" + canary, "SMS_PARAMS=to={{to}},text={{text}},key=" + canary,
		"SMS_HEADERS=X-Key=Bearer " + canary, "SMS_USERNAME=u", "SMS_PASSWORD=" + canary,
		"TRACING_ENDPOINT=" + plain.URL, "TRACING_HEADERS=authorization=" + canary,
		"KYC_IDENTITY_URL=" + silent + "/register", "KYC_IDENTITY_CA_FILE=" + silentCA,
		"AUDIT_ANCHOR_URL=" + silent + "/anchors", "AUDIT_ANCHOR_CA_FILE=" + silentCA, "AUDIT_ANCHOR_SECRET=" + signing,
		"ACCOUNTING_URL=" + silent + "/journals", "ACCOUNTING_CA_FILE=" + silentCA, "ACCOUNTING_SECRET=" + signing,
		"PUSH_WEBHOOK_SECRET=" + signing, "CORPORATE_DEFAULT_PASSWORD=" + canary,
		"RATES_URL=" + asked + "/rates/" + canary + "?key=" + canary, "RATES_KEY=Bearer " + canary,
		"RATES_CA_FILE=" + askedCA,
		"PROVIDERS_EXCHANGES=spot=" + asked, "PROVIDERS_ACCOUNTS=spot/main=" + canary + ":" + canary,
		"PROVIDERS_CA_FILE=" + askedCA,
		"FILES_S3_URL=" + files + "/castellan-files", "FILES_S3_CA_FILE=" + filesCA, "FILES_S3_ACCESS_KEY=CASTELLANTEST",
		"FILES_S3_SECRET_KEY=" + canary,
	}
	s.relay(t)
	t.Cleanup(s.close)
	return s
}

func (s *surroundings) close() {
	for _, stop := range s.stop {
		stop()
	}
	s.stop = nil
}

// relay starts a mail server that requires encryption and a password, and quotes a wrong one in its refusal.
func (s *surroundings) relay(t *testing.T) {
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return mailSession{s}, nil }))
	pair := httptest.NewTLSServer(http.NotFoundHandler())
	pair.Close()
	server.Domain, server.TLSConfig, server.ErrorLog = "relay.test", pair.TLS, log.New(io.Discard, "", 0)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	storetest.Must(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: pair.Certificate().Raw}), 0o600))
	l := storetest.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	s.stop = append(s.stop, func() { l.Close(); server.Close(); <-done })
	s.settings = append(s.settings, "MAIL_HOST=127.0.0.1", "MAIL_PORT="+strconv.Itoa(l.Addr().(*net.TCPAddr).Port),
		"MAIL_CA_FILE="+ca, "MAIL_FROM=a@example.com", "MAIL_USERNAME=castellan", "MAIL_PASSWORD="+canary)
}

type mailSession struct{ s *surroundings }

func (m mailSession) AuthMechanisms() []string { return []string{sasl.Plain} }

func (m mailSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, _, password string) error {
		if password != m.s.password {
			return &smtp.SMTPError{Code: 535, Message: "no such password: " + password}
		}
		return nil
	}), nil
}

func (m mailSession) Mail(string, *smtp.MailOptions) error { m.s.mails.Add(1); return nil }
func (m mailSession) Rcpt(string, *smtp.RcptOptions) error { return nil }
func (m mailSession) Data(io.Reader) error                 { return errors.New("no mail is wanted") }
func (m mailSession) Reset()                               {}
func (m mailSession) Logout() error                        { return nil }

// outsideKeys are the live checks of services in surroundings.
var outsideKeys = []string{"files.s3_url", "mail.host", "sms.url", "kyc.identity_url", "audit.anchor_url",
	"accounting.url", "tracing.endpoint", "rates.url", "providers.accounts"}

// live returns the findings of the live checks by their keys.
func live(t *testing.T, r setup.Report, s setup.Severity) map[string]setup.Finding {
	t.Helper()
	found := map[string]setup.Finding{}
	for _, f := range r.Findings {
		if f.Severity == s {
			found[f.Key] = f
		}
		storetest.Lacks(t, strings.ReplaceAll(f.String(), "-", ""), "hunter2canary")
	}
	return found
}

// Every configured service is reached. No message, no request to a gateway and no object remains.
func TestLiveChecksPass(t *testing.T) {
	s := newSurroundings(t)
	r := Examine(t.Context(), production(t, s.settings...), nil)
	ok := live(t, r, setup.OK)
	for _, key := range outsideKeys {
		if _, passed := ok[key]; !passed {
			t.Errorf("%s did not pass", key)
		}
	}
	for key, want := range map[string]string{"rates.url": "2 rates", "providers.accounts": "spot/main is read",
		"mail.host": "starttls", "kyc.identity_url": "certificate expires"} {
		storetest.Contains(t, ok[key].State, want, key)
	}
	objects := storetest.Value(s.bucket.ListBucket("castellan-files", nil, gofakes3.ListBucketPage{}))(t)
	if s.mails.Load() != 0 || s.requests.Load() != 0 || len(objects.Contents) != 0 {
		t.Errorf("%d mails, %d requests, %d objects", s.mails.Load(), s.requests.Load(), len(objects.Contents))
	}
}

// A service that refuses or is missing is a fault of its own check.
func TestLiveChecksFail(t *testing.T) {
	s := newSurroundings(t)
	c := production(t, append(s.settings, "DATABASE_URL=postgres://svc:"+canary+"@127.0.0.1:1/x")...)
	secretsAreSet(t, c)
	s.password = "another"
	storetest.Must(t, s.bucket.DeleteBucket("castellan-files"))
	faults := live(t, Examine(t.Context(), c, nil), setup.Fault)
	for key, want := range map[string]string{"mail.host": "535", "files.s3_url": "put",
		"database.url": "127.0.0.1"} {
		storetest.Contains(t, faults[key].State, want, key)
	}
	s.close()
	faults = live(t, Examine(t.Context(), c, nil), setup.Fault)
	for _, key := range outsideKeys {
		if faults[key].Mend == "" || faults[key].Effect == "" {
			t.Errorf("%s is no fault: %v", key, faults[key])
		}
	}
}

// secretsAreSet fails for an empty setting of a secret type: the tests above would miss it.
func secretsAreSet(t *testing.T, c config.Config) {
	t.Helper()
	v := reflect.ValueOf(c)
	for i := range v.NumField() {
		if v.Field(i).Kind() != reflect.Struct {
			continue
		}
		for j := range v.Field(i).NumField() {
			name := v.Type().Field(i).Name + "." + v.Field(i).Type().Field(j).Name
			if name == "SMS.Body" { // excludes SMS.Params
				continue
			}
			switch s := v.Field(i).Field(j).Interface().(type) {
			case config.Secret:
				if !strings.Contains(strings.ReplaceAll(s.Reveal(), "-", ""), strings.ReplaceAll(canary, "-", "")) {
					t.Errorf("%s holds no canary", name)
				}
			case config.Secrets:
				if len(s) == 0 {
					t.Errorf("%s is empty", name)
				}
			}
		}
	}
}

// A machine without AVX2 is reported, but is no fault.
func TestProcessorWithoutVectorsIsReported(t *testing.T) {
	for use, want := range map[string]setup.Severity{"avx512": setup.OK, "avx2": setup.OK, "go": setup.Feature} {
		f := vectors(use).find(t.Context())
		if f.Severity != want || use != "go" && !strings.Contains(f.State, use) ||
			use == "go" && !strings.Contains(f.Effect, "quarter of the logins") {
			t.Errorf("%s: %+v", use, f)
		}
	}
}

// Local files are read: an invalid file of countries, certificates, the master key.
func TestLiveChecksOfFiles(t *testing.T) {
	dir := t.TempDir()
	geo := filepath.Join(dir, "countries.mmdb")
	storetest.Must(t, os.WriteFile(geo, []byte("no database"), 0o600))
	c := production(t, "GEO_MMDB_FILE="+geo, "DATABASE_URL=postgres://a@127.0.0.1:1/b", "CLUSTER_TLS_DIR="+dir,
		"CLUSTER_GOSSIP_ADDR=127.0.0.1:1", "CLUSTER_ACTOR_ADDR=127.0.0.1:2")
	storetest.Must(t, os.MkdirAll(c.Files.Folder, 0o700))
	r := Examine(t.Context(), c, nil)
	faults := live(t, r, setup.Fault)
	for _, key := range []string{"geo.mmdb_file", "cluster.tls_dir", "keys.master_file", "database.url"} {
		if faults[key].State == "" {
			t.Errorf("%s is no fault", key)
		}
	}
	ok := live(t, r, setup.OK)
	if ok["files.folder"].State == "" || ok["clock"].State == "" || ok["data_dir"].State == "" {
		t.Errorf("passed: %v", ok)
	}
	if left, err := os.ReadDir(c.Files.Folder); err != nil || len(left) > 1 || len(left) == 1 && left[0].Name() != "tmp" {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
	storetest.Must(t, os.WriteFile(c.Keys.MasterFile, []byte(strings.Repeat("A", 43)+"=\n"), 0o644))
	storetest.Must(t, os.Chmod(c.Keys.MasterFile, 0o644))
	f := live(t, Examine(t.Context(), c, nil), setup.Fault)["keys.master_file"]
	storetest.Contains(t, f.State, "chmod 600", "an open master key")
	c = production(t) // with a database that nothing has migrated
	storetest.Must(t, os.Mkdir(c.DataDir, 0o700))
	storetest.Must(t, os.WriteFile(filepath.Join(c.DataDir, "castellan.db"), nil, 0o600))
	ok = live(t, Examine(t.Context(), c, nil), setup.OK)
	if s := ok["files.folder"].State + ok["keys.master_file"].State; strings.Count(s, "at the first start") != 2 {
		t.Errorf("before the first start: %v", ok)
	}
}
