//go:build faults

package office

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

const (
	journalPath  = "/integration/begin-accounting-integration"
	journalAsks  = 64
	journalMoves = 60
	journalKills = 12
)

// books is a cluster that makes journals, and the accounting server that receives them.
type books struct {
	*blackbox.Cluster
	t      *testing.T
	boss   blackbox.Headers
	folder string

	mu     sync.Mutex
	posted map[string][][]byte // by the id of the message
	hold   chan struct{}       // answers wait for it; nil: no wait
	asked  chan string         // receives the id of a waiting message
}

// ServeHTTP receives a file.
func (b *books) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sending node was killed
	}
	id := r.Header.Get("webhook-id")
	b.mu.Lock()
	b.posted[id] = append(b.posted[id], body)
	hold := b.hold
	b.mu.Unlock()
	if hold != nil {
		select {
		case b.asked <- id:
		default:
		}
		<-hold
	}
}

// Sixty-four concurrent requests to three nodes for one period create one job. Its CSV and its JSON exist
// once, with unchanged bytes, whenever a node is killed: during the requests, when the job starts, and while
// it delivers (D-ADM-01).
func TestFaultsJournalIsCreatedOnce(t *testing.T) {
	s := blackbox.NewSite(t, "postgres")
	b := &books{t: t, folder: t.TempDir(), posted: map[string][][]byte{}, asked: make(chan string, 1)}
	other := httptest.NewServer(b)
	t.Cleanup(other.Close)
	s.Set("FILES_FOLDER="+b.folder, "ACCOUNTING_URL="+other.URL, "LIMITS_ENABLED=false",
		"ACCOUNTING_SECRET=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	alone := s.Start() // makes the tables
	s.Exec(`UPDATE parameter SET json = '{"BTC":{"BTC":"bc1qtreasury"}}' WHERE code = 'TREASURY'`)
	alone.Stop()
	b.Cluster = s.Cluster()
	for range 3 {
		b.Join()
	}
	b.boss = blackbox.Admin(t, s, b.Nodes[0])
	b.moveMoney()

	today := time.Now().UTC()
	period := map[string]string{"startDate": today.AddDate(0, 0, -30).Format(time.DateOnly),
		"endDate": today.AddDate(0, 0, 1).Format(time.DateOnly), "invoiceDate": today.Format(time.DateOnly)}
	id := b.ask(period, func() {})
	asJSON, asCSV := b.files(id)
	storetest.Equal(t, sides(t, asCSV), 2*journalMoves, "sides of", asCSV)
	killed := map[string]int{}
	for round := range journalKills {
		// The new key of the old job frees the period for another job.
		s.Exec("UPDATE job SET key = $1 WHERE id = $2", fmt.Sprint("round ", round), id)
		kill := func(n *blackbox.Node) {
			n.Kill()
			b.Forget(n)
		}
		switch round % 3 {
		case 0:
			killed["while clients ask"]++
			id = b.ask(period, func() {
				time.Sleep(time.Duration(rand.IntN(40)) * time.Millisecond)
				kill(b.Nodes[rand.IntN(3)])
			})
		case 1:
			killed["as the owner begins"]++
			id = b.ask(period, func() {})
			owner := b.ownerOf(id)
			time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
			kill(owner)
			if s.Count("job WHERE state <> 'done' AND id = $1", id) == 1 {
				killed["of these before its end"]++
			}
		case 2:
			killed["while it delivers"]++
			hold := make(chan struct{})
			b.mu.Lock()
			b.hold = hold
			b.mu.Unlock()
			id = b.ask(period, func() {})
			message := <-b.asked
			kill(b.ownerOf(id))
			b.mu.Lock()
			b.hold = nil
			b.mu.Unlock()
			close(hold)
			t.Logf("killed with %s under way", filepath.Ext(message))
		}
		gotJSON, gotCSV := b.files(id)
		if !bytes.Equal(gotJSON, asJSON) || !bytes.Equal(gotCSV, asCSV) {
			t.Fatalf("round %d: another journal:\n%s\nthan\n%s", round, gotCSV, asCSV)
		}
		b.Join()
	}
	kept, err := filepath.Glob(filepath.Join(b.folder, "accounting", "*"))
	if err != nil || len(kept) != 2*(journalKills+1) {
		t.Errorf("%d files of %d jobs: %v, %v", len(kept), journalKills+1, kept, err)
	}
	s.Has(journalKills+1, "job WHERE kind = 'accounting-integration'")
	posts := 0
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, all := range b.posted {
		posts += len(all)
	}
	t.Logf("killed %v; %d asks, %d jobs, %d posts of %d files of %d and %d bytes", killed, journalAsks*(journalKills+1),
		journalKills+1, posts, len(b.posted), len(asJSON), len(asCSV))
}

// sides returns the number of postings in a journal.
func sides(t *testing.T, table []byte) (sum int) {
	t.Helper()
	rows := storetest.Value(csv.NewReader(bytes.NewReader(table)).ReadAll())(t)
	for _, row := range rows[1:] {
		n, err := strconv.Atoi(row[7])
		if err != nil {
			t.Fatalf("the count of %v: %v", row, err)
		}
		sum += n
	}
	return sum
}

// moveMoney books credits and debits.
func (b *books) moveMoney() {
	user := b.AddUser("user")
	for i := range journalMoves {
		direction, n := "C", int64(1000+i)
		if i%2 == 1 {
			direction, n = "D", int64(i)
		}
		a := b.Nodes[i%3].Ok(b.t, "POST", blackbox.AdjustPath, map[string]any{"userId": user.ID, "currencyCode": "BTC",
			"networkCode": "BTC", "amount": coins(n), "type": direction, "uniqueId": fmt.Sprint("move ", i)}, b.boss)
		var out struct {
			Data struct{ TransactionID string }
		}
		if a.Read(b.t, &out); out.Data.TransactionID == "" {
			b.t.Fatalf("a movement: %s", a)
		}
	}
}

// ask requests one period from all nodes at once while do runs. A client without an answer tries another node.
// All must get the same job.
func (b *books) ask(period map[string]string, do func()) (id string) {
	b.t.Helper()
	nodes := append([]*blackbox.Node(nil), b.Nodes...)
	ids := map[string]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range journalAsks {
		all.Go(func() {
			for end := time.Now().Add(blackbox.Within(30)); time.Now().Before(end); i++ {
				a, err := nodes[i%len(nodes)].Try("POST", journalPath, period, b.boss)
				if err != nil || a.Status == 503 {
					time.Sleep(5 * time.Millisecond)
					continue
				}
				var out struct{ Data struct{ ID string } }
				if err := json.Unmarshal(a.Body, &out); err != nil || a.Status != 200 {
					b.t.Errorf("asked for a journal: %s, %v", a, err)
				}
				mu.Lock()
				defer mu.Unlock()
				ids[out.Data.ID]++
				id = out.Data.ID
				return
			}
			b.t.Error("no node answered")
		})
	}
	do()
	all.Wait()
	if len(ids) != 1 || ids[id] != journalAsks || id == "" {
		b.t.Fatalf("%d requests for one period got the jobs %v", journalAsks, ids)
	}
	return id
}

// ownerOf returns the node that runs a job.
func (b *books) ownerOf(id string) (owner *blackbox.Node) {
	b.t.Helper()
	blackbox.Until(b.t, blackbox.Within(15), "the owner of the job", func() bool {
		var began time.Time
		for _, life := range blackbox.Activations(b.Ever) {
			if n := b.Ever[life.Node]; life.Kind == "job" && life.ID == id && !n.Ended() && life.From.After(began) {
				owner, began = n, life.From
			}
		}
		return owner != nil
	})
	return owner
}

// files waits for the end of a job and returns its files. Every repeated delivery must equal the stored file.
func (b *books) files(id string) (asJSON, asCSV []byte) {
	b.t.Helper()
	blackbox.Until(b.t, blackbox.Within(60), "the journal made", func() bool {
		return b.Count("job WHERE state = 'done' AND id = $1", id) == 1
	})
	file := func(ext string) []byte {
		kept := storetest.Value(os.ReadFile(filepath.Join(b.folder, "accounting", id+ext)))(b.t)
		b.mu.Lock()
		defer b.mu.Unlock()
		posts := b.posted["accounting/"+id+ext]
		for _, p := range posts {
			if !bytes.Equal(p, kept) {
				b.t.Fatalf("posted was\n%s\nand kept\n%s", p, kept)
			}
		}
		if len(posts) == 0 {
			b.t.Fatalf("%s was not posted", id+ext)
		}
		return kept
	}
	return file(".json"), file(".csv")
}
