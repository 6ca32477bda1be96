//go:build faults

package faults

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/kit/picture/picturetest"
	"castellan/internal/blackbox"
)

// Harmful files are sent thirty-two at a time to every endpoint that stores files. Each is refused, no part of
// them is stored, and the process grows by at most 100 MiB. A client that gets "busy" tries again.
func TestFaultsHostileFilesAreRefused(t *testing.T) {
	const (
		senders = 32
		most    = 100 << 20
	)
	files := picturetest.Hostile()
	s := blackbox.NewSite(t, "sqlite").UsualHeap().Set("LIMITS_ENABLED=false", "LOG_LEVEL=info")
	n := s.Start()
	boss, user := blackbox.Admin(t, s, n), s.AddUser("user")
	owner := n.Auth(t, user)
	type attack struct {
		name, path string
		body       map[string]any
		who        blackbox.Headers
	}
	var all []attack
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f := files[name]
		all = append(all, attack{name, "/admin/cdn/upload",
			map[string]any{"imageData": f, "imageName": "logo", "folderType": "logo"}, boss})
		if strings.HasPrefix(name, "pdf") {
			continue // a valid document
		}
		all = append(all,
			attack{name, "/document/upload-document",
				map[string]any{"base64Data": f, "fileName": "a.png", "description": "d"}, owner},
			attack{name, "/admin/save-document",
				map[string]any{"base64String": f, "documentName": "a.png", "userId": user.ID, "type": 1}, boss})
	}
	before := n.PeakMemory()
	var next, busy atomic.Int64
	var mu sync.Mutex
	var took []time.Duration
	slowest := ""
	var senderGroup sync.WaitGroup
	for range senders {
		senderGroup.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(all); i = next.Add(1) - 1 {
				a := all[i]
				began := time.Now()
				got, err := n.Try("POST", a.path, a.body, a.who)
				for ; err == nil && got.Code() == "OVERLOADED" && time.Since(began) < blackbox.Within(60); busy.Add(1) {
					time.Sleep(100 * time.Millisecond)
					began = time.Now()
					got, err = n.Try("POST", a.path, a.body, a.who)
				}
				if err != nil || got.Status < 400 || got.Status > 499 || got.Code() != "INVALID_FIELD" {
					t.Errorf("%s at %s: %s, %v", a.name, a.path, got, err)
				}
				mu.Lock()
				if took = append(took, time.Since(began)); slices.Max(took) == took[len(took)-1] {
					slowest = fmt.Sprint(a.name, " at ", a.path)
				}
				mu.Unlock()
			}
		})
	}
	senderGroup.Wait()
	rise := n.PeakMemory() - before
	slices.Sort(took)
	t.Logf("%d files, %d requests, %d times busy; median %v, longest %v (%s); %d MiB more than %d", len(files), len(all),
		busy.Load(), took[len(took)/2].Round(time.Microsecond), took[len(took)-1].Round(time.Millisecond), slowest,
		rise>>20, before>>20)
	if rise > most {
		t.Errorf("the process grew by %d bytes, want at most %d", rise, most)
	}
	a := &archive{Site: s, files: s.Dir + "/files"}
	if s.Count("document") != 0 || a.kept("document") != 0 || a.kept("public") != 0 {
		t.Errorf("%d rows, %d documents, %d pictures are kept", s.Count("document"), a.kept("document"), a.kept("public"))
	}
}
