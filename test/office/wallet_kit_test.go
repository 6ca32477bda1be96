package office

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
	"castellan/internal/child"
)

// walletProcess is the program examples/wallet as a process beside the service.
type walletProcess struct {
	program, dir, url, key string

	mu      sync.Mutex
	process *child.Process
	log     *os.File
}

// newWallet builds the program and gives it a folder and a key of the service.
func newWallet(t *testing.T, s *blackbox.Site, url, role string) *walletProcess {
	dir := t.TempDir()
	w := &walletProcess{program: filepath.Join(dir, "wallet"), dir: filepath.Join(dir, "data"), url: url}
	storetest.Must(t, child.Build(w.program, "castellan/examples/wallet"))
	w.key = s.ServiceKey("wallet", "--role", role)["service-auth"]
	var err error
	if w.log, err = os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.kill()
		w.log.Close()
		if text, err := os.ReadFile(w.log.Name()); err == nil && t.Failed() {
			lines := strings.Split(string(text), "\n")
			t.Logf("log of the wallet:\n%s", strings.Join(lines[max(0, len(lines)-60):], "\n"))
		}
	})
	return w
}

// start starts the wallet, which must not be running.
func (w *walletProcess) start(flags ...string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	args := append([]string{"run", "--dir", w.dir, "--url", w.url}, flags...)
	cmd := exec.Command(w.program, args...)
	cmd.Env = append(os.Environ(), "WALLET_SERVICE_AUTH="+w.key)
	cmd.Stdout, cmd.Stderr = w.log, w.log
	var err error
	w.process, err = child.Start(cmd)
	return err
}

// kill ends the wallet like kill -9 and returns when it is gone.
func (w *walletProcess) kill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.process != nil {
		w.process.Kill()
	}
}

// run executes another command of the wallet and returns its output.
func (w *walletProcess) run(args ...string) (string, error) {
	cmd := exec.Command(w.program, append([]string{args[0], "--dir", w.dir}, args[1:]...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("wallet %v: %w: %s", args, err, out)
	}
	return strings.TrimSpace(string(out)), err
}

// must is run for the test's own goroutine.
func (w *walletProcess) must(t *testing.T, args ...string) string {
	t.Helper()
	return storetest.Value(w.run(args...))(t)
}

// chainTx is a transaction of the wallet's chain.
type chainTx struct {
	Key, To, Memo string
	Nonce         uint64
	Amount        json.Number
}

// chain reads the transactions of the wallet's chain.
func (w *walletProcess) chain(t *testing.T) (all []chainTx) {
	t.Helper()
	f := storetest.Value(os.Open(filepath.Join(w.dir, "chain.jsonl")))(t)
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var line struct{ Tx *chainTx }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		if line.Tx != nil {
			all = append(all, *line.Tx)
		}
	}
	storetest.Must(t, lines.Err())
	return all
}

const withdrawalsPath = "/integration/withdrawals"

// vault is a service with a wallet, and a customer with 1 BTC who may withdraw it.
type vault struct {
	*blackbox.Counter
	wallet, owner blackbox.Headers
}

func newVault(t *testing.T, s *blackbox.Site) *vault {
	t.Helper()
	d := &vault{Counter: blackbox.NewCounter(t, s, "MFA_FOUR_EYES=")}
	s.Exec(`UPDATE users SET level = 1`)
	s.Exec(`INSERT INTO exchange_pair (base, quote) VALUES ('BTC', 'TRY')`)
	s.Exec(`INSERT INTO exchange_rate (pair_id, at, rate, source, created_at) SELECT id, $1, '100', 'test', $1
		FROM exchange_pair WHERE base = 'BTC' AND quote = 'TRY'`, time.Now().Add(-time.Minute).UnixMilli())
	d.wallet = s.ServiceKey("wallet", "--role", "admin")
	d.Awaits(t, 10*time.Second, 200, "GET", "/integration/events", nil, d.wallet)
	d.Ok(t, "POST", blackbox.AdjustPath, d.Adjustment("C", "1"), d.Boss)
	d.owner = d.Login(t, d.Customer)
	return d
}

// request is the body of a withdrawal request, which the customer approves.
func (d *vault) request(externalID string) map[string]any {
	return map[string]any{"externalId": externalID, "userToken": d.owner["x-auth"], "currencyCode": "BTC",
		"network": "BTC", "amount": 0.1, "address": "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"}
}

// made returns the id of a withdrawal that the customer has approved.
func (d *vault) made(t *testing.T, externalID string) string {
	t.Helper()
	f := blackbox.FlowOf(t, d.Do(t, "POST", withdrawalsPath, d.request(externalID), d.wallet))
	return withdrawn(t, d.Complete(t, f, f.Method(t, "SMS"), d.Code(t, d.Customer, "SMS")))
}

// withdrawn returns the id of the withdrawal in the outcome of a challenge.
func withdrawn(t *testing.T, a blackbox.Answer) string {
	t.Helper()
	id := a.Is(t, 200, "").At(t, "execResult", "data", "id")
	if id == "" {
		t.Fatalf("no withdrawal: %s", a)
	}
	return id
}

// status returns the status of a withdrawal.
func (d *vault) status(t *testing.T, id string) string {
	t.Helper()
	return d.Ok(t, "GET", withdrawalsPath+"/"+id, nil, d.wallet).At(t, "data", "status")
}

func (d *vault) move(t *testing.T, id, to string) {
	t.Helper()
	d.Ok(t, "PATCH", withdrawalsPath+"/"+id, map[string]string{"status": to}, d.wallet)
}
