package office

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

var restores = flag.Int("restores", 1, "restores of each test of restores; 50 in make faults-restores")

// platform is a vault under load: withdrawals are requested, and a naive wallet pays each one it can claim.
type platform struct {
	*vault
	stop atomic.Bool
	calm atomic.Bool // the load is small, so that few requests are repeated after each restore

	ended       blackbox.Headers // a session that was revoked before the load
	early, late string           // cursors of events before the load and after it

	mu    sync.Mutex
	acked []string          // ids of withdrawals whose request was answered
	asked int               // external ids that were requested
	paid  map[string]string // external id → transaction
	twice []string
	ids   map[string]string // id → external id
}

func external(i int) string { return fmt.Sprintf("restored-%d", i) }

// request sends a request of a withdrawal and returns its id; "" if it was refused.
func (p *platform) request(c blackbox.Client, externalID string, userID string) string {
	a, err := c.Try("POST", withdrawalsPath, map[string]any{"externalId": externalID, "userId": userID,
		"currencyCode": "BTC", "network": "BTC", "amount": 0.001, "address": "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"},
		p.wallet)
	var made struct{ Data struct{ ID string } }
	if err != nil || a.Status != 200 || json.Unmarshal(a.Body, &made) != nil {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ids[made.Data.ID] = externalID
	return made.Data.ID
}

// pay claims a withdrawal and pays it: it knows only what the service answers.
func (p *platform) pay(c blackbox.Client, id string) (claimed bool) {
	a, err := c.Try("PATCH", withdrawalsPath+"/"+id, map[string]string{"status": "processing"}, p.wallet)
	if err != nil || a.Status != 200 {
		return false
	}
	p.mu.Lock()
	externalID := p.ids[id]
	if p.paid[externalID] != "" {
		p.twice = append(p.twice, externalID)
	}
	p.paid[externalID] = "tx-" + id
	p.mu.Unlock()
	if rand.N(2) == 0 { // else the wallet stops here
		c.Try("PATCH", withdrawalsPath+"/"+id, map[string]string{"status": "sent", "txId": "tx-" + id}, p.wallet)
	}
	return true
}

// load requests and pays withdrawals until stop.
func (p *platform) load(c blackbox.Client) {
	for !p.stop.Load() {
		if p.calm.Load() {
			time.Sleep(rand.N(500 * time.Millisecond))
		}
		p.mu.Lock()
		i := p.asked
		p.asked++
		p.mu.Unlock()
		id := p.request(c, external(i), p.Customer.ID)
		for ; id == ""; id = p.request(c, external(i), p.Customer.ID) { // the database or the service restarts
			time.Sleep(100 * time.Millisecond)
		}
		p.mu.Lock()
		p.acked = append(p.acked, id)
		p.mu.Unlock()
		if rand.N(3) > 0 {
			p.pay(c, id)
		}
	}
}

// taken is a backup, with what was acknowledged before it began.
type taken struct {
	dir   string
	acked []string
}

// A platform is backed up at random instants under load, and each backup is restored to another place. Nothing that
// was acknowledged before the backup is missing, no session lives on, and cursors that were issued later are refused.
// No withdrawal is paid twice, whether it was restored or is requested again.
func TestRestoredBackups(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		p := newPlatform(t, s.Alone())
		clients := p.start(t)
		var all []taken
		for i := range *restores {
			time.Sleep(rand.N(300 * time.Millisecond))
			b := taken{dir: filepath.Join(t.TempDir(), fmt.Sprint(i)), acked: p.acknowledged()}
			s.Succeeds("", "backup", "--to", b.dir)
			all = append(all, b)
		}
		p.finish(t, clients)
		for i, b := range all {
			p.restore(t, b, i == 0)
		}
	})
}

// newPlatform returns a platform without load.
func newPlatform(t *testing.T, s *blackbox.Site) *platform {
	t.Helper()
	p := &platform{vault: newVault(t, s), paid: map[string]string{}, ids: map[string]string{}}
	p.Ok(t, "POST", blackbox.AdjustPath, p.Adjustment("C", "50"), p.Boss)
	p.ended = p.Login(t, p.Customer)
	p.Ok(t, "POST", "/auth/logout", nil, p.ended)
	p.early, _ = p.cursor(t, p.Client, "", "")
	return p
}

// start puts the platform under load until finish.
func (p *platform) start(t *testing.T) *sync.WaitGroup {
	t.Helper()
	clients := new(sync.WaitGroup)
	c := p.Client // that of the first process: a later one has the same address
	for range 3 {
		clients.Go(func() { p.load(c) })
	}
	return clients
}

// acknowledged returns the withdrawals whose request was answered until now.
func (p *platform) acknowledged() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.acked)
}

// more waits until further withdrawals were acknowledged.
func (p *platform) more(t *testing.T, n int) {
	t.Helper()
	enough := len(p.acknowledged()) + n
	blackbox.Until(t, time.Minute, "withdrawals are acknowledged", func() bool { return len(p.acknowledged()) >= enough })
}

// finish ends the load and the service, after more changes that no restore has.
func (p *platform) finish(t *testing.T, clients *sync.WaitGroup) {
	t.Helper()
	p.more(t, 40)
	p.stop.Store(true)
	clients.Wait()
	blackbox.Until(t, time.Minute, "the feed has the last withdrawal", func() (seen bool) {
		p.late, seen = p.cursor(t, p.Client, p.early, p.acked[len(p.acked)-1])
		return seen
	})
	p.Stop()
	if p.asked < 30 || len(p.paid) < 10 {
		t.Errorf("too little load: %d requests, %d payments", p.asked, len(p.paid))
	}
}

// cursor reads the events after a cursor to their end. seen reports whether one is of a withdrawal.
func (p *platform) cursor(t *testing.T, c blackbox.Client, after, id string) (end string, seen bool) {
	t.Helper()
	for {
		var feed struct {
			Data   []struct{ Data struct{ WithdrawalID string } }
			Cursor string
		}
		c.Ok(t, "GET", "/integration/events?limit=1000&cursor="+after, nil, p.wallet).Read(t, &feed)
		for _, event := range feed.Data {
			seen = seen || event.Data.WithdrawalID == id
		}
		if after = feed.Cursor; len(feed.Data) < 1000 {
			return after, seen
		}
	}
}

// elsewhere lets a site have the settings of the platform.
func (p *platform) elsewhere(s *blackbox.Site) *blackbox.Site {
	return s.Set("KEYS_MASTER_FILE="+filepath.Join(p.Site.Dir, "master.key"), "LIMITS_ENABLED=false")
}

// restore restores a backup and finishes the work of the platform there.
func (p *platform) restore(t *testing.T, b taken, broken bool) {
	t.Helper()
	s := p.elsewhere(blackbox.NewSite(t, p.Site.Kind).Empty())
	command := []string{"restore", "--from", b.dir, "--verify"}
	if broken {
		p.refused(t, s, b.dir)
		p.interrupted(t, s, command)
	}
	got := s.Command("", command...)
	if got.Code != 0 && !broken {
		t.Fatalf("restore: exit %d: %s%s", got.Code, got.Out, got.ErrOut)
	}
	if again := s.Command("", command...); again.Code != 1 || !strings.Contains(again.ErrOut, "empty place") {
		t.Errorf("over a database: exit %d: %s", again.Code, again.ErrOut)
	}
	p.restored(t, s, b.acked)
}

// near is how many withdrawals before a point, and after it, are requested again. With all of them, the work of many
// restores would grow with their square.
const near = 40

// restored starts a site after a restore and finishes the work of the platform there. acked are the withdrawals that
// were acknowledged before the point.
func (p *platform) restored(t *testing.T, s *blackbox.Site, acked []string) {
	t.Helper()
	n := s.Start()
	last := acked
	if s.Count("withdrawal_queue WHERE id IN ('"+strings.Join(acked, "', '")+"')") == len(acked) {
		last = acked[max(0, len(acked)-near):]
	}
	for _, id := range last {
		n.Ok(t, "GET", withdrawalsPath+"/"+id, nil, p.wallet)
		if p.pay(n.Client, id) {
			t.Fatalf("withdrawal %s was claimed before the comparison", id)
		}
	}
	for _, who := range []blackbox.Headers{p.owner, p.Boss, p.ended} {
		n.Do(t, "GET", "/auth/sessions", nil, who).Is(t, 401, "UNAUTHENTICATED")
	}
	if s.Count("session WHERE ended_at = 0") > 0 || s.Count("challenge WHERE state IN (0, 1)") > 0 {
		t.Error("a session or a challenge lives on")
	}
	n.Do(t, "GET", "/integration/events?cursor="+p.late, nil, p.wallet).Is(t, 409, "INVALID_STATE")
	now, _ := p.cursor(t, n.Client, p.early, "")
	if again, _ := p.cursor(t, n.Client, now, ""); now == p.early || again != now {
		t.Errorf("the events after an earlier cursor end at %s", now)
	}
	held := s.Text("SELECT id FROM restore_withdrawal ORDER BY id LIMIT 1")
	boss := p.login(t, n)
	n.Do(t, "POST", "/admin/withdrawals/"+held+"/resume", `{"reason":"restored"}`, boss).Is(t, 409, "INVALID_STATE")
	p.reconcile(t, s)
	p.again(t, n, boss, acked)
	n.Stop()
	for _, what := range []string{"ledger", "audit"} {
		s.Succeeds("", what, "verify")
	}
}

func (p *platform) login(t *testing.T, n *blackbox.Node) blackbox.Headers {
	t.Helper()
	return n.Auth(t, p.Asker)
}

// refused tries damaged, incomplete and foreign backups. The place stays empty.
func (p *platform) refused(t *testing.T, s *blackbox.Site, dir string) {
	t.Helper()
	bad := t.TempDir()
	storetest.Must(t, os.CopyFS(bad, os.DirFS(dir)))
	parts, err := filepath.Glob(filepath.Join(bad, "streams", "*", "000000"))
	if err != nil || len(parts) == 0 {
		t.Fatal(parts, err)
	}
	manifest := filepath.Join(bad, "manifest.json")
	text := storetest.Value(os.ReadFile(manifest))(t)
	foreign := filepath.Join(t.TempDir(), "master.key")
	s.MakeMaster(foreign)
	for _, c := range []struct {
		damage   func() error
		settings []string
		want     string
	}{
		{func() error {
			return os.WriteFile(manifest, []byte(strings.Replace(string(text), "dev", "old", 1)), 0o600)
		}, nil,
			"changed"},
		{func() error { return os.WriteFile(manifest, text, 0o600) }, []string{"KEYS_MASTER_FILE=" + foreign}, "master key"},
		{func() error { return os.Truncate(parts[0], 1) }, nil, "damaged"},
		{func() error { return os.Remove(parts[0]) }, nil, "missing"},
		{func() error { return os.Remove(manifest) }, nil, "no complete backup"},
	} {
		storetest.Must(t, c.damage())
		got := s.CommandWith(c.settings, "", "restore", "--from", bad)
		if got.Code != 1 || !strings.Contains(got.ErrOut, c.want) {
			t.Errorf("%s: exit %d: %s", c.want, got.Code, got.ErrOut)
		}
	}
	if _, err := os.Stat(filepath.Join(s.Dir, "castellan.db.restoring")); err == nil {
		t.Error("a refused backup changed the place")
	}
}

// interrupted kills a restore as soon as it has changed the place. Unless it was complete, the service refuses it.
func (p *platform) interrupted(t *testing.T, s *blackbox.Site, command []string) {
	restoring := s.Run(command...)
	blackbox.Until(t, blackbox.Within(20), "the restore begins", func() bool {
		if s.Kind == "sqlite" {
			_, err := os.Stat(filepath.Join(s.Dir, "castellan.db.restoring"))
			return err == nil || restoring.Ended()
		}
		return s.Count("pg_class WHERE relname = 'restore_unfinished'") > 0 || restoring.Ended()
	})
	restoring.Kill()
	whole := s.Kind == "sqlite"
	if whole {
		_, err := os.Stat(filepath.Join(s.Dir, "castellan.db"))
		whole = err == nil
	} else {
		whole = s.Count("pg_class WHERE relname = 'restore_unfinished'") == 0
	}
	if got := s.Command("", "migrate"); !whole && (got.Code != 1 || !strings.Contains(got.ErrOut, "unfinished")) {
		t.Errorf("an unfinished restore is opened: exit %d: %s%s", got.Code, got.Out, got.ErrOut)
	}
}

// reconcile compares the restored queue with the payments.
func (p *platform) reconcile(t *testing.T, s *blackbox.Site) {
	t.Helper()
	s.Says(1, "restore reconcile --finish")
	lines := "withdrawalId,externalId,state,txId\n"
	p.mu.Lock()
	for id, externalID := range p.ids {
		if tx := p.paid[externalID]; tx != "" {
			lines += fmt.Sprintf("%s,%s,sent,%s\n", id, externalID, tx)
		} else {
			lines += fmt.Sprintf("%s,%s,unsent,\n", id, externalID)
		}
	}
	p.mu.Unlock()
	file := filepath.Join(t.TempDir(), "wallet.csv")
	storetest.Must(t, os.WriteFile(file, []byte(lines), 0o600))
	for range 2 { // a file may be repeated
		s.Succeeds("", "restore", "reconcile", "--wallet", file, "--finish")
	}
}

// again requests withdrawals from around the point once more, resumes those that wait, and pays what can be claimed.
func (p *platform) again(t *testing.T, n *blackbox.Node, boss blackbox.Headers, acked []string) {
	t.Helper()
	last := 0
	if len(acked) > 0 {
		_, err := fmt.Sscanf(p.ids[acked[len(acked)-1]], "restored-%d", &last)
		storetest.Must(t, err)
	}
	mine := &platform{vault: p.vault, paid: maps.Clone(p.paid), ids: map[string]string{}}
	for i := max(0, last-near); i < min(last+near, p.asked); i++ {
		if id := mine.request(n.Client, external(i), p.Customer.ID); id != "" {
			n.Do(t, "POST", "/admin/withdrawals/"+id+"/resume", `{"reason":"restored"}`, boss)
			mine.pay(n.Client, id)
		}
		if mine.paid[external(i)] == "" {
			t.Errorf("%s was not paid in the end", external(i))
		}
	}
	if len(mine.twice) > 0 {
		t.Errorf("paid twice: %v", mine.twice)
	}
}
