package contract_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/richtext"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/contract"
	"castellan/persistence"
	"castellan/persistence/office"
	"castellan/persistence/persistencetest"
)

type desk struct {
	*contract.Service
	t  *testing.T
	db *persistence.DB
	id int64 // of a contract without details
}

var by = audit.By{UserID: "boss"}

func newDesk(t *testing.T) *desk {
	db := persistencetest.SQLite(t)
	persistencetest.Exec(t, db, "DELETE FROM contract_detail")
	persistencetest.Exec(t, db, "DELETE FROM contract")
	store := office.NewContracts(db)
	d := &desk{&contract.Service{Store: store, HTML: richtext.New(""),
		Changes: admin.Changes{Commit: db, Now: time.Now, Lock: store.Lock}}, t, db, 0}
	d.id = d.contract("A1")
	return d
}

func (d *desk) contract(code string) int64 {
	d.t.Helper()
	c, err := d.Add(d.t.Context(), by, contract.Contract{Code: code, Name: "n"})
	storetest.Must(d.t, err)
	return c.ID
}

// add adds details with these order numbers; 0 for none.
func (d *desk) add(places ...int64) []contract.Detail {
	d.t.Helper()
	drafts := make([]contract.Draft, len(places))
	for i, p := range places {
		if drafts[i] = (contract.Draft{Title: fmt.Sprint("t", i), Content: "<b>c</b>"}); p != 0 {
			drafts[i].OrderNo = &p
		}
	}
	added, err := d.AddDetails(d.t.Context(), by, d.id, drafts)
	storetest.Must(d.t, err)
	return added
}

// order returns the details of the contract as "id:place".
func (d *desk) order() string {
	d.t.Helper()
	all, err := d.Details(d.t.Context(), d.id)
	storetest.Must(d.t, err)
	return places(all)
}

func places(all []contract.Detail) string {
	var out []string
	for _, x := range all {
		out = append(out, fmt.Sprint(x.ID, ":", x.OrderNo))
	}
	return strings.Join(out, " ")
}

func TestCheck(t *testing.T) {
	text := strings.Repeat("ü", 200)
	for want, all := range map[string][]contract.Contract{
		"": {{Code: "AB", Name: "n"}, {Code: "A" + strings.Repeat("_", 63), Name: text, Version: text}},
		"code": {{Code: "A", Name: "n"}, {Code: "1A", Name: "n"}, {Code: "Ab", Name: "n"},
			{Code: "A" + strings.Repeat("B", 64), Name: "n"}},
		"name":          {{Code: "AB"}, {Code: "AB", Name: text + "x"}},
		"version":       {{Code: "AB", Name: "n", Version: text + "x"}},
		"nameTr nameAr": {{Code: "AB", Name: "n", Turkish: text + "x", Arabic: text + "x"}},
		"code name":     {{}},
		"name version":  {{Code: "AB", Version: text + "x"}},
		"code version":  {{Name: "n", Version: text + "x"}},
	} {
		for _, c := range all {
			storetest.WantsFields(t, c.Check(), want)
		}
	}
}

func TestAdd(t *testing.T) {
	d := newDesk(t)
	_, err := d.Add(t.Context(), by, contract.Contract{Code: "A1", Name: "n"})
	storetest.Wants(t, err, fault.RecordAlreadyExist)
	_, err = d.Add(t.Context(), by, contract.Contract{Code: "B1"})
	storetest.WantsFields(t, err, "name")
	storetest.Same(t, persistencetest.Acts(t, d.db), []string{`CONTRACT_ADD|boss||A1|code "A1", name "n"`})
	found, err := d.Store.Contracts(t.Context(), contract.Query{ID: &d.id})
	if err != nil || len(found) != 1 || found[0].Code != "A1" {
		t.Errorf("%+v, %v", found, err)
	}
}

// A detail without an order number is added at the end, and no number exceeds the highest.
func TestAddDetails(t *testing.T) {
	d := newDesk(t)
	added := d.add(0, 7, 0, 3, 0)
	if got := places(added); got != "1:1 2:7 3:8 4:3 5:9" {
		t.Errorf("added %s", got)
	}
	if got := d.order(); got != "1:1 4:3 2:7 3:8 5:9" {
		t.Errorf("stored %s", got)
	}
	d.add(1_000_000_000, 0)
	if got := d.order(); !strings.HasSuffix(got, fmt.Sprintf("6:%d 7:%[1]d", 1_000_000_000)) {
		t.Errorf("stored %s", got)
	}
	one, err := d.AddDetails(t.Context(), by, d.id, []contract.Draft{{Title: "<t>", Content: "<b onclick='x'>c</b>"}})
	storetest.Must(t, err)
	if x := one[0]; x.Title != "<t>" || x.Content != "<b>c</b>" || x.Policy != d.HTML.ID || x.ContractID != d.id {
		t.Errorf("%+v", x)
	}
	_, err = d.AddDetails(t.Context(), by, 99, []contract.Draft{{}})
	storetest.Wants(t, err, fault.RecordNotFound)
	_, err = d.AddDetails(t.Context(), by, d.id, nil)
	storetest.WantsFields(t, err, "details")
	_, err = d.AddDetails(t.Context(), by, d.id, make([]contract.Draft, 501))
	storetest.WantsFields(t, err, "details")
	acts := persistencetest.Acts(t, d.db)
	if want := "CONTRACT_DETAIL_ADD|boss||1, 2, 3, 4, 5|contract 1"; acts[1] != want || len(acts) != 4 {
		t.Errorf("%v", acts)
	}
	if added, err := d.AddDetails(t.Context(), by, d.id, make([]contract.Draft, 500)); err != nil ||
		len(added) != 500 {
		t.Errorf("%d, %v", len(added), err)
	}
	if acts := persistencetest.Acts(t, d.db); !strings.Contains(acts[4], ", 28 … 500 in all, SHA-256 ") ||
		!strings.Contains(acts[4], "||9, 10") {
		t.Errorf("%s", acts[4])
	}
}

// HTML cleaned by another policy is cleaned again before it is shown.
func TestShown(t *testing.T) {
	d := newDesk(t)
	_, err := d.Store.AddDetail(t.Context(), contract.Detail{ContractID: d.id, Content: "<b id='x'>c</b>", Policy: "old"})
	storetest.Must(t, err)
	all, err := d.Details(t.Context(), d.id)
	if err != nil || all[0].Content != "<b>c</b>" {
		t.Errorf("%+v, %v", all, err)
	}
	changed, err := d.ChangeDetails(t.Context(), by, []contract.Change{{ID: 1, Title: new("x")}})
	if err != nil || changed[0].Content != "<b>c</b>" || changed[0].Title != "x" {
		t.Errorf("%+v, %v", changed, err)
	}
}

func TestChangeDetails(t *testing.T) {
	d := newDesk(t)
	d.add(1, 2)
	other := d.contract("B1")
	changed, err := d.ChangeDetails(t.Context(), by, []contract.Change{
		{ID: 2, Title: new("x"), Content: new("<i style='x'>y</i>"), OrderNo: new(int64(5)), ContractID: &other},
		{ID: 1, ContractID: &d.id}})
	storetest.Must(t, err)
	want := contract.Detail{ID: 2, ContractID: other, Title: "x", Content: "<i>y</i>", Policy: d.HTML.ID, OrderNo: 5}
	if len(changed) != 2 || changed[1].ID != 1 || changed[1].Title != "t0" {
		t.Errorf("%+v", changed)
	}
	storetest.Same(t, changed[0], want)
	stored, err := d.Store.DetailsOf(t.Context(), []int64{2})
	storetest.Must(t, err)
	storetest.Same(t, stored, []contract.Detail{want})
	if got := d.order(); got != "1:1" {
		t.Errorf("left are %s", got)
	}
	acts := persistencetest.Acts(t, d.db)
	if got := acts[len(acts)-1]; got != "CONTRACT_DETAIL_UPDATE|boss||2, 1|"+
		`2 contractId 1 -> 2, title "t1" -> "x", content "<b>c</b>" -> "<i>y</i>", orderNo 2 -> 5, 1 unchanged` {
		t.Errorf("%s", got)
	}
	for want, changes := range map[string][]contract.Change{"details": nil, "details[1].id": {{ID: 1}, {ID: 1}}} {
		_, err := d.ChangeDetails(t.Context(), by, changes)
		storetest.WantsFields(t, err, want)
	}
	many := make([]contract.Change, 501)
	for i := range many {
		many[i].ID = int64(i)
	}
	_, err = d.ChangeDetails(t.Context(), by, many)
	storetest.WantsFields(t, err, "details")
	for _, changes := range [][]contract.Change{{{ID: 1, Title: new("y")}, {ID: 9}},
		{{ID: 1, ContractID: new(int64(9))}}} {
		_, err = d.ChangeDetails(t.Context(), by, changes)
		storetest.Wants(t, err, fault.RecordNotFound)
	}
}

// All are removed or none.
func TestRemoveDetails(t *testing.T) {
	d := newDesk(t)
	d.add(1, 2, 3)
	storetest.Wants(t, d.RemoveDetails(t.Context(), by, []int64{1, 9}), fault.RecordNotFound)
	storetest.WantsFields(t, d.RemoveDetails(t.Context(), by, nil), "ids")
	storetest.WantsFields(t, d.RemoveDetails(t.Context(), by, []int64{1, 2, 1}), "ids[2]")
	if got := d.order(); got != "1:1 2:2 3:3" {
		t.Errorf("left are %s", got)
	}
	storetest.Must(t, d.RemoveDetails(t.Context(), by, []int64{1, 3}))
	acts := persistencetest.Acts(t, d.db)
	if got := d.order(); got != "2:2" || acts[len(acts)-1] != "CONTRACT_DETAIL_DELETE|boss||1, 3|" {
		t.Errorf("left are %s, %v", got, acts)
	}
}

func TestReorder(t *testing.T) {
	d := newDesk(t)
	d.add(1, 2, 3)
	after, err := d.Reorder(t.Context(), by, d.id, []contract.Place{{ID: 3, OrderNo: 1}, {ID: 1, OrderNo: 9}})
	storetest.Must(t, err)
	acts := persistencetest.Acts(t, d.db)
	if got := places(after); got != "3:1 2:2 1:9" || d.order() != got ||
		acts[len(acts)-1] != "CONTRACT_DETAIL_REORDER|boss||3, 1|3 orderNo 3 -> 1, 1 orderNo 1 -> 9" {
		t.Errorf("%s, stored %s, %v", got, d.order(), acts)
	}
	other := d.contract("B1")
	_, err = d.Reorder(t.Context(), by, other, []contract.Place{{ID: 3}})
	storetest.WantsFields(t, err, "details[0].id")
	_, err = d.Reorder(t.Context(), by, d.id, []contract.Place{{ID: 3}, {ID: 3}})
	storetest.WantsFields(t, err, "details[1].id")
	for _, c := range []struct{ contract, detail int64 }{{99, 3}, {d.id, 99}} {
		_, err = d.Reorder(t.Context(), by, c.contract, []contract.Place{{ID: c.detail}})
		storetest.Wants(t, err, fault.RecordNotFound)
	}
	if d.order() != "3:1 2:2 1:9" {
		t.Errorf("stored %s", d.order())
	}
}

// A new installation has the terms of use and the privacy notice.
func TestSeed(t *testing.T) {
	db := persistencetest.SQLite(t)
	persistencetest.Exec(t, db, "DELETE FROM contract")
	store := office.NewContracts(db)
	storetest.Must(t, contract.Seed(t.Context(), store))
	all, err := store.Contracts(t.Context(), contract.Query{})
	if err != nil || len(all) != 2 || all[0].Code != "TERMS_OF_USE" || all[1].Code != "PRIVACY" || !all[0].Active {
		t.Errorf("%+v, %v", all, err)
	}
	storetest.Wants(t, contract.Seed(t.Context(), store), fault.RecordAlreadyExist)
}
