//go:build faults

package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/kit/picture/picturetest"
	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// uploadKills is how often the service is killed while files are uploaded.
var uploadKills = map[string]int{"sqlite": 100, "postgres": 30}

const (
	uploadClients = 4
	uploadLatest  = 20 // documents that are fetched again after a kill, besides the new ones
	cdnFolder     = "logo"
)

// archive is a service that stores files while it is killed, and the files that it acknowledged.
type archive struct {
	*blackbox.Site
	boss  blackbox.Headers
	files string

	mu        sync.Mutex
	documents map[string][]byte // acknowledged, by path
	pictures  map[string][]byte // acknowledged, by path: empty until they were fetched first
	made      int
}

// Four clients upload documents and public pictures while the service is killed repeatedly. After every
// restart each row has its bytes, and every acknowledged file is present. In the end the sweeper leaves no
// bytes without a row. Pictures have no row: each stored picture is complete.
func TestFaultsUploadsKeepAcknowledgedFiles(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		seed := rand.Uint64()
		rng := rand.New(rand.NewPCG(seed, 0))
		t.Logf("seed %d", seed)
		s.Set("LIMITS_ENABLED=false", "LOG_LEVEL=info", "FILES_USER_QUOTA=100000")
		a := &archive{Site: s, files: filepath.Join(s.Dir, "files"), documents: map[string][]byte{},
			pictures: map[string][]byte{}}
		n := s.Start()
		a.boss = blackbox.Admin(t, s, n)
		var users [uploadClients]blackbox.Headers
		for i := range users {
			users[i] = n.Auth(t, s.AddUser("user"))
		}
		seen := map[string]bool{} // documents whose bytes were compared
		for kill := range uploadKills[s.Kind] {
			var all sync.WaitGroup
			errs := make([]error, uploadClients)
			for i, who := range users {
				rng := rand.New(rand.NewPCG(seed, uint64(1000*kill+i+1)))
				all.Go(func() { errs[i] = a.upload(n.Client, who, rng) })
			}
			time.Sleep(time.Duration(20_000+rng.IntN(180_000)) * time.Microsecond)
			n.Kill()
			all.Wait()
			n = s.Start()
			if err := errors.Join(append(errs, a.check(n.Client, seen))...); err != nil {
				t.Fatalf("after kill %d: %v", kill, err)
			}
		}
		clear(seen)
		storetest.Must(t, a.check(n.Client, seen))
		n.Stop()
		rows, kept := s.Count("document"), a.kept("document")
		if kept < rows {
			t.Errorf("%d files of %d documents", kept, rows)
		}
		left := a.kept("tmp")
		a.sweep(t)
		if got := a.kept("document"); got != rows || a.kept("tmp") != 0 {
			t.Errorf("%d files of %d documents after the sweep, and %d that are on their way", got, rows, a.kept("tmp"))
		}
		n = s.Start()
		clear(seen)
		if err := a.check(n.Client, seen); err != nil {
			t.Errorf("after the sweep: %v", err)
		}
		t.Logf("%d kills: %d documents and %d pictures acknowledged, %d rows, %d pictures; swept %d files without a row "+
			"and %d on their way", uploadKills[s.Kind], len(a.documents), len(a.pictures), rows, a.kept("public"),
			kept-rows, left)
		n.Stop()
		s.Succeeds("", "audit", "verify")
	})
}

// upload uploads until the connection is lost.
func (a *archive) upload(c blackbox.Client, user blackbox.Headers, rng *rand.Rand) error {
	for {
		a.mu.Lock()
		a.made++
		name := fmt.Sprint("file-", a.made)
		a.mu.Unlock()
		content := picturetest.PNG(8+rng.IntN(120), 8+rng.IntN(120))
		path, body, who := "/document/upload-document", map[string]any{"base64Data": content, "fileName": name + ".png",
			"description": "d"}, user
		public := rng.IntN(3) == 0
		if public {
			path, body, who = "/admin/cdn/upload", map[string]any{"imageData": content, "imageName": name + ".png",
				"folderType": cdnFolder, "useSuffix": false}, a.boss
		}
		got, err := c.Try("POST", path, body, who)
		if err != nil || got.Status == 503 {
			return nil
		}
		var out struct {
			Data struct{ FilePath, ImageURL string }
		}
		if err := json.Unmarshal(got.Body, &out); err != nil || got.Status != 200 {
			return fmt.Errorf("%s: %s", path, got)
		}
		a.mu.Lock()
		if public {
			u, err := url.Parse(out.Data.ImageURL)
			if err != nil {
				return err
			}
			a.pictures[u.Path] = nil
		} else {
			a.documents[out.Data.FilePath] = content
		}
		a.mu.Unlock()
	}
}

// check fetches the file of every new row, and every picture, and verifies that the acknowledged files are
// among them.
func (a *archive) check(c blackbox.Client, seen map[string]bool) error {
	db := a.Open()
	defer db.Close()
	rows, err := db.Query("SELECT path FROM document ORDER BY id")
	if err != nil {
		return err
	}
	defer rows.Close()
	var paths []string
	there := map[string]bool{}
	for rows.Next() {
		var path string
		if err := rows.Scan(&path); err != nil {
			return err
		}
		paths, there[path] = append(paths, path), true
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for i, path := range paths {
		if seen[path] && i < len(paths)-uploadLatest {
			if _, err := os.Stat(filepath.Join(a.files, path)); err != nil {
				return fmt.Errorf("a row without its bytes: %w", err)
			}
			continue
		}
		info, _ := json.Marshal(map[string]string{"filePath": path})
		got, err := c.Try("GET", "/admin/get-document-file?documentInfo="+url.QueryEscape(string(info)), nil, a.boss)
		if err != nil || got.Status != 200 || got.Header.Get("Content-Type") != "image/png" {
			return fmt.Errorf("the file of the row %s: %d %s, %v", path, got.Status, got.Code(), err)
		}
		if want, acknowledged := a.documents[path]; acknowledged && !bytes.Equal(got.Body, want) ||
			!bytes.HasPrefix(got.Body, []byte("\x89PNG")) {
			return fmt.Errorf("the document %s has other bytes than were uploaded", path)
		}
		seen[path] = true
	}
	for path := range a.documents {
		if !there[path] {
			return fmt.Errorf("the document %s was acknowledged and is not there", path)
		}
	}
	return a.checkPictures(c, seen)
}

// checkPictures fetches the stored public pictures, acknowledged or not.
func (a *archive) checkPictures(c blackbox.Client, seen map[string]bool) error {
	there := map[string]bool{}
	root := filepath.Join(a.files, "public")
	err := filepath.WalkDir(root, func(file string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		path := "/cdn" + strings.TrimPrefix(filepath.ToSlash(file), root)
		there[path] = true
		if seen[path] {
			return nil
		}
		seen[path] = true
		got, err := c.Try("GET", path, nil, nil)
		if err != nil || got.Status != 200 || got.Header.Get("Content-Type") != "image/png" ||
			!bytes.HasSuffix(got.Body, []byte("IEND\xaeB`\x82")) {
			return fmt.Errorf("the picture %s: %d %s, %d bytes, %v", path, got.Status, got.Code(), len(got.Body), err)
		}
		return nil
	})
	for path := range a.pictures {
		if !there[path] && err == nil {
			err = fmt.Errorf("the picture %s was acknowledged and is not there", path)
		}
	}
	return err
}

// kept returns the number of files in an area.
func (a *archive) kept(area string) (n int) {
	err := filepath.WalkDir(filepath.Join(a.files, area), func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			n++
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		panic(err)
	}
	return n
}

// sweep lets the service sweep once, with files that are two hours old: the sweeper takes the age from the
// file system, and no setting shortens it.
func (a *archive) sweep(t *testing.T) {
	t.Helper()
	old := time.Now().Add(-2 * time.Hour)
	err := filepath.WalkDir(a.files, func(file string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			err = os.Chtimes(file, old, old)
		}
		return err
	})
	storetest.Must(t, err)
	a.Exec("DELETE FROM job WHERE kind = 'sweep-files'") // so that the slot of this hour comes again
	n := a.Start()
	blackbox.Until(t, blackbox.Within(30), "swept", func() bool {
		return a.Count("job WHERE kind = 'sweep-files' AND state = 'done'") > 0
	})
	n.Stop()
}

const broadcastMany = 500

// broadcastKills is how often the service is killed during one job. On PostgreSQL each kill takes 15 s,
// because another process might run the job.
var broadcastKills = map[string]int{"sqlite": 10, "postgres": 3}

// The service is killed repeatedly while it sends an SMS and a notification to five hundred users. No user
// gets it twice, and every user is counted. At most one window of items for each kill has an unknown result
// (D-ADM-04, D-ADM-05).
func TestFaultsBroadcastSendsOnce(t *testing.T) {
	var ids []string
	for i := range broadcastMany {
		ids = append(ids, fmt.Sprint("BULK", 1_000_001+i))
	}
	for _, c := range []struct {
		name, path string
		body       map[string]any
		outside    func(s *blackbox.Site) *blackbox.Postbox
	}{
		{"sms", "/send-bulk-sms", map[string]any{"userIds": ids, "messageBody": "SOL can be traded."},
			(*blackbox.Site).Gateway},
		{"notification", "/admin/send-notification", map[string]any{"memberId": ids, "topic": "security",
			"title": "New device", "body": "Look at your devices."}, (*blackbox.Site).Relay},
	} {
		t.Run(c.name, func(t *testing.T) {
			blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
				s.Set("LIMITS_ENABLED=false")
				n := s.Start()
				boss := blackbox.Admin(t, s, n)
				phone := blackbox.Enrolled(t, n, s.Seeded("admin"), boss)
				blackbox.Bulk(t, s, broadcastMany)
				s.Exec("UPDATE users SET country_code = '90' WHERE id LIKE 'BULK%'")
				n.Stop()
				box := c.outside(s)
				box.Slow(8 * time.Millisecond)
				n = s.Start()
				var started struct {
					Data struct {
						ID    string
						Count int
					}
				}
				n.Ok(t, "POST", c.path, c.body, blackbox.Headers{"x-auth": boss["x-auth"], "otp": phone.Next(t)}).
					Read(t, &started)
				storetest.Equal(t, started.Data.Count, broadcastMany, "recipients")
				m := &blackbox.Mailing{Site: s, T: t, Box: box, ID: started.Data.ID, Who: boss, Many: broadcastMany}
				kills := broadcastKills[s.Kind]
				for i := range kills {
					m.Moves(blackbox.Within(30), fmt.Sprint("messages before kill ", i))
					time.Sleep(time.Duration(rand.IntN(150)) * time.Millisecond)
					n.Kill()
					n = s.Start()
				}
				box.Slow(0)
				j := m.Over(n, blackbox.Within(90))
				got := map[string]int{}
				for _, d := range box.Deliveries() {
					if d.To == s.Seeded("admin").Mail { // a notice of the authenticator above
						continue
					}
					if got[d.To]++; got[d.To] > 1 {
						t.Errorf("%s got it %d times", d.To, got[d.To])
					}
				}
				if j.Status != "done" || j.Total != broadcastMany || j.Done+j.Failed+j.Unknown+j.Skipped != j.Total ||
					j.Failed != 0 || j.Skipped != 0 || j.Unknown > 20*kills {
					t.Errorf("after %d kills: %+v", kills, j)
				}
				if len(got) < j.Done || len(got) > j.Done+j.Unknown {
					t.Errorf("%d were reached: %+v", len(got), j)
				}
				if c.name == "notification" { // it commits with the outcome
					users := "notification WHERE user_id LIKE 'BULK%'"
					rows, of := s.Count(users), s.Count("(SELECT DISTINCT user_id FROM "+users+") AS u")
					if rows != j.Done || of != rows {
						t.Errorf("%d notifications of %d users: %+v", rows, of, j)
					}
				}
				t.Logf("%d kills: %d done, %d unknown, %d failed, %d skipped of %d; %d were reached", kills, j.Done,
					j.Unknown, j.Failed, j.Skipped, j.Total, len(got))
			})
		})
	}
}
