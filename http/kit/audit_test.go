package kit_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/http/apitest"
	"castellan/http/edge"
	httpaudit "castellan/http/kit/audit"
	"castellan/persistence"
	"castellan/persistence/kit"
)

// Administrators read the audit by filters and in pages, newest first (D-EXT-01, D-EXT-03, D-GEN-11).
func TestAuditList(t *testing.T) {
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		store, at := kit.NewAudit(db), time.UnixMilli(1_700_000_000_000).UTC()
		row := func(n int) audit.Record {
			return audit.Record{At: at.Add(time.Duration(n) * time.Hour), ActorID: fmt.Sprint("a", n), UserID: fmt.Sprint("u",
				n), Action: fmt.Sprint("ACT_", n), Target: fmt.Sprint("t", n), Outcome: audit.Success,
				IP: fmt.Sprint("192.0.2.", n), RequestID: fmt.Sprint("r", n), Detail: "d"}
		}
		refused := row(2)
		refused.Outcome = audit.Refused
		for _, r := range []audit.Record{row(0), row(1), refused} {
			storetest.Must(t, db.Commit(t.Context(), r))
		}
		stored := storetest.Value(store.List(t.Context(), audit.Query{}, page.Query[audit.Place]{}))(t)
		var rows [3]string // oldest first
		for i, r := range stored.Records {
			n := 2 - i
			rows[n] = fmt.Sprintf(`{"id":"%s:%d","at":"%s","actorId":"a%d","userId":"u%d","action":"ACT_%d","target":"t%d",`+
				`"outcome":"%s","ip":"192.0.2.%d","requestId":"r%d","detail":"d","hash":"%s"}`, r.Chain, n+1,
				at.Add(time.Duration(n)*time.Hour).Format("2006-01-02T15:04:05.000Z"), n, n, n, n,
				[]string{"success", "success", "refused"}[n], n, n, hex.EncodeToString(r.Hash))
		}
		var state audit.State
		s := apitest.Serve(t, edge.Options{}, httpaudit.Group{Store: store,
			State: func(context.Context) (audit.State, error) { return state, nil }})
		const line = "GET /admin/audit"
		for query, want := range map[string]string{
			"": rows[2] + "," + rows[1] + "," + rows[0], "?userId=u1": rows[1], "?actorId=a1": rows[1],
			"?action=ACT_1": rows[1], "?target=t1": rows[1], "?requestId=r1": rows[1], "?ip=192.0.2.1": rows[1],
			"?ip=%3A%3Affff%3A192.0.2.1": rows[1], "?ip=192.0.2.1&action=ACT_2": "", "?limit=1": rows[2],
			"?from=2023-11-14T23:13:20Z": rows[2] + "," + rows[1], "?to=2023-11-14T23:13:20Z": rows[1] + "," + rows[0],
			"?to=2023-11-14": rows[1] + "," + rows[0], "?from=2023-11-15": rows[2],
		} {
			s.Wants(line+query, "", 200, "["+want+"]")
		}
		res, _ := s.Send(line+"?limit=2&count=true", "")
		_, next, _ := strings.Cut(res.Header.Get("Link"), "<")
		next, _, _ = strings.Cut(next, `>; rel="next"`)
		if s.Wants("GET "+next, "", 200, "["+rows[0]+"]"); res.Header.Get("X-Total-Count") != "3" {
			t.Errorf("%v", res.Header)
		}
		for query, want := range map[string]string{"?cursor=x": "cursor", "?from=soon": "from",
			"?from=2024-02-02&to=2024-02-01": "from", "?ip=127.0.0": "ip", "?userId=&actorId=&ip=": "userId actorId ip",
			"?action=&target=&requestId=": "action requestId target"} {
			s.Wants(line+query, "", 400, "INVALID_FIELD "+want)
		}

		const chain = "GET /admin/audit/chain"
		s.Wants(chain, "", 200, `{"counter":0,"mac":"","at":null,"holds":true,"problem":null}`)
		state = audit.State{Last: audit.Anchor{Counter: 7, MAC: []byte{1, 255}}, At: at, Broken: "checkpoint 6 is missing"}
		s.Wants(chain, "", 200, `{"counter":7,"mac":"01ff","at":"2023-11-14T22:13:20.000Z","holds":false,`+
			`"problem":"checkpoint 6 is missing"}`)
	})
}
