package trail

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/http/edge"
	"castellan/http/rest"
)

func denied(userID, key string, code fault.Code, requestID string) edge.Answered {
	return edge.Answered{Key: key, Status: 403, Code: code, Caller: rest.Caller{UserID: userID, RequestID: requestID,
		IP: netip.MustParseAddr("192.0.2.9")}}
}

// One row for a caller, an endpoint and a minute (D-EXT-03), written before the refusal is answered, with its source
// and time (D-EXT-01).
func TestDenials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to, log := &trail{}, new(bytes.Buffer)
		d := NewDenials(to, time.Now, slog.New(slog.NewTextHandler(log, nil)))
		time.Sleep(17 * time.Second)
		d.Observe(denied("u1", "GET /x", fault.Forbidden, "r1"))
		want := audit.Record{At: time.Now(), ActorID: "u1", UserID: "u1", Action: "DENIED", Target: "GET /x",
			Outcome: audit.Refused, IP: "192.0.2.9", RequestID: "r1", Detail: "FORBIDDEN"}
		if rows, _ := to.kept(); len(rows) != 1 || rows[0] != want {
			t.Fatalf("%+v, want %+v", rows, want)
		}

		// For the rest of the minute it is the same denial, whatever its reason.
		time.Sleep(10 * time.Second)
		for range 3 {
			d.Observe(denied("u1", "GET /x", fault.Forbidden, "r2"))
		}
		d.Observe(denied("u1", "GET /x", fault.GeoBlocked, "r3"))
		storetest.Must(t, d.Flush(t.Context(), false))
		if rows, _ := to.kept(); len(rows) != 1 || log.Len() > 0 {
			t.Errorf("%d rows, log %s", len(rows), log)
		}

		// Another endpoint, caller or minute is a new denial; an unknown caller or a status other than 403 is none.
		d.Observe(denied("u1", "POST /x", fault.Forbidden, "r4"))
		d.Observe(denied("u2", "GET /x", fault.Forbidden, "r5"))
		d.Observe(denied("", "GET /x", fault.Forbidden, "r6"))
		other := denied("u3", "GET /x", fault.Unauthenticated, "r7")
		other.Status = 401
		d.Observe(other)
		time.Sleep(time.Minute)
		storetest.Must(t, d.Flush(t.Context(), false))
		d.Observe(denied("u1", "GET /x", fault.Forbidden, "r8"))
		rows, _ := to.kept()
		var ids []string
		for _, r := range rows {
			ids = append(ids, r.RequestID)
		}
		storetest.Equal(t, strings.Join(ids, " "), "r1 r4 r5 r8", "rows of")
		if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "userId=u1") ||
			!strings.Contains(text, "times=4") || !strings.Contains(text, `route="GET /x"`) {
			t.Errorf("the repeats of the minute: %s", text)
		}
	})
}

// The refusals of a service client have a row, too, and name no account; its audited calls also.
func TestTrailOfServiceClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &trail{}
		d := NewDenials(to, time.Now, slog.New(slog.DiscardHandler))
		a := denied("", "POST /guard/challenges", fault.Forbidden, "r1")
		a.Caller.Service = "shop"
		for range 3 {
			d.Observe(a)
		}
		want := audit.Record{At: time.Now(), ActorID: "service:shop", Action: "DENIED", Target: "POST /guard/challenges",
			Outcome: audit.Refused, IP: "192.0.2.9", RequestID: "r1", Detail: "FORBIDDEN"}
		if rows, _ := to.kept(); len(rows) != 1 || rows[0] != want {
			t.Errorf("%+v, want %+v", rows, want)
		}
		c := NewCalls(to, func(rest.Caller, *rest.Endpoint) bool { return true }, time.Now)
		a.Endpoint, a.Status = &rest.Endpoint{}, 200
		c.Observe(a)
		storetest.Must(t, c.Flush(t.Context()))
		if rows, _ := to.kept(); len(rows) != 2 || rows[1].ActorID != "service:shop" || rows[1].Action != "CALL" {
			t.Errorf("%+v", rows)
		}
	})
}

// Rows that the database refuses are written later, rows that do not fit are counted, and an answer is delayed only
// briefly.
func TestDenialsOfAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &trail{err: fault.New(fault.Unavailable, "down")}
		d := NewDenials(to, time.Now, slog.New(slog.DiscardHandler))
		d.Observe(denied("u0", "GET /x", fault.Forbidden, "r1"))
		d.Observe(denied("u0", "GET /x", fault.Forbidden, "r2"))
		if err := d.Flush(t.Context(), false); err == nil {
			t.Error("nothing was written, and that is no error")
		}
		for i := range maxDenials + 4 {
			d.Observe(denied(fmt.Sprint("u", i), "GET /x", fault.Forbidden, "r3"))
		}
		to.set(nil, nil)
		storetest.Must(t, d.Flush(t.Context(), true))
		rows, _ := to.kept()
		if len(rows) != maxDenials+1 || rows[0].RequestID != "r1" {
			t.Fatalf("%d rows, the first is %+v", len(rows), rows[0])
		}
		if lost := rows[maxRowBatch]; lost.Action != "DENIALS_LOST" ||
			lost.Detail != "4 refusals have no row" { // after the first batch
			t.Errorf("%+v", lost)
		}
		if err := d.Flush(t.Context(), true); err != nil || len(d.noted)+len(d.waiting)+d.lost > 0 {
			t.Errorf("%d noted, %d waiting, %d lost, %v", len(d.noted), len(d.waiting), d.lost, err)
		}

		d.commit = hanging{}
		began := time.Now()
		d.Observe(denied("u1", "GET /x", fault.Forbidden, "r4"))
		if held := time.Since(began); held > denialTime {
			t.Errorf("an answer was held up for %v", held)
		}
	})
}

// hanging accepts a unit only when its caller has stopped waiting.
type hanging struct{ commit.Committer }

func (hanging) Commit(ctx context.Context, _ ...commit.Write) error {
	<-ctx.Done()
	return ctx.Err()
}
