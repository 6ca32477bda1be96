package contract_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/contract"
	"castellan/persistence/persistencetest"
)

// statuses lists the statuses of all contracts in the order of their ids.
func (d *desk) statuses() (all []contract.Status) {
	d.t.Helper()
	stored, err := d.Store.Contracts(d.t.Context(), contract.Query{})
	storetest.Must(d.t, err)
	for _, c := range stored {
		all = append(all, c.Status(stored))
	}
	return all
}

func (d *desk) version(of int64, version string) int64 {
	d.t.Helper()
	c, err := d.AddVersion(d.t.Context(), by, of, version)
	storetest.Must(d.t, err)
	return c.ID
}

func (d *desk) publish(id int64) {
	d.t.Helper()
	_, status, err := d.Publish(d.t.Context(), by, id)
	storetest.Must(d.t, err)
	if status != contract.StatusActive {
		d.t.Errorf("published as %s", status)
	}
}

func (d *desk) has(want ...contract.Status) {
	d.t.Helper()
	if got := d.statuses(); !slices.Equal(got, want) {
		d.t.Errorf("statuses %v, want %v", got, want)
	}
}

// D-INT-14: a version is a draft with copies of the details; publishing it replaces the active version.
func TestVersions(t *testing.T) {
	const draft, active, inactive, replaced = contract.StatusDraft, contract.StatusActive, contract.StatusInactive,
		contract.StatusReplaced
	d := newDesk(t)
	d.contract("B1")
	d.add(3, 5)
	d.has(draft, draft)
	d.publish(d.id)
	d.has(active, draft)
	next := d.version(d.id, "2")
	details, err := d.Details(t.Context(), next)
	storetest.Must(t, err)
	if places(details) != "3:3 4:5" || details[0].Content != "<b>c</b>" {
		t.Errorf("copied %+v", details)
	}
	d.has(active, draft, draft)
	d.publish(next)
	d.publish(next) // again, after a lost answer
	d.has(replaced, draft, active)
	for range 2 {
		_, status, err := d.Deactivate(t.Context(), by, next)
		storetest.Must(t, err)
		if status != inactive {
			t.Errorf("deactivated as %s", status)
		}
	}
	d.has(replaced, draft, inactive)
	d.publish(next)
	third := d.version(d.id, "3") // an earlier text, again
	d.has(replaced, draft, active, draft)
	_, _, err = d.Publish(t.Context(), by, d.id)
	storetest.Wants(t, err, fault.InvalidState)
	d.publish(third)
	d.has(replaced, draft, replaced, active)
	storetest.Same(t, persistencetest.Acts(t, d.db)[3:], []string{"CONTRACT_PUBLISH|boss||1|A1",
		"CONTRACT_VERSION_ADD|boss||3|A1 2 from 1", "CONTRACT_PUBLISH|boss||3|A1 2", "CONTRACT_DEACTIVATE|boss||3|A1 2",
		"CONTRACT_PUBLISH|boss||3|A1 2", "CONTRACT_VERSION_ADD|boss||4|A1 3 from 1", "CONTRACT_PUBLISH|boss||4|A1 3"})

	_, err = d.AddVersion(t.Context(), by, d.id, "2")
	storetest.Wants(t, err, fault.RecordAlreadyExist)
	_, err = d.AddVersion(t.Context(), by, 9, "5")
	storetest.Wants(t, err, fault.RecordNotFound)
	_, _, err = d.Publish(t.Context(), by, 9)
	storetest.Wants(t, err, fault.RecordNotFound)
	_, _, err = d.Deactivate(t.Context(), by, 9)
	storetest.Wants(t, err, fault.RecordNotFound)
}

// A draft that was overtaken by a later version cannot be published.
func TestOvertakenDraft(t *testing.T) {
	d := newDesk(t)
	first, second := d.version(d.id, "1"), d.version(d.id, "2")
	d.publish(second)
	_, _, err := d.Publish(t.Context(), by, first)
	storetest.Wants(t, err, fault.InvalidState)
	d.has(contract.StatusReplaced, contract.StatusReplaced, contract.StatusActive)
}

// Names change until the contract is replaced, the version until it is published.
func TestEdit(t *testing.T) {
	d := newDesk(t)
	edit := func(id int64, f func(*contract.Contract)) (contract.Contract, error) {
		c, _, err := d.Edit(t.Context(), by, id, f)
		return c, err
	}
	names := func(c *contract.Contract) { c.Name, c.Turkish = "N", "İ" }
	version := func(c *contract.Contract) { c.Version = "1" }
	for range 2 {
		c, err := edit(d.id, names)
		if storetest.Must(t, err); c.Title("tr") != "İ" || c.Title("ar") != "N" || c.Title("de") != "N" {
			t.Errorf("%+v", c)
		}
	}
	_, err := edit(d.id, func(c *contract.Contract) { c.Arabic = "أ"; version(c) })
	storetest.Must(t, err)
	_, err = edit(d.id, func(c *contract.Contract) { c.Name = "" })
	storetest.WantsFields(t, err, "name")
	_, err = edit(9, names)
	storetest.Wants(t, err, fault.RecordNotFound)
	d.publish(d.id)
	_, err = edit(d.id, func(c *contract.Contract) { c.Version = "1.1" })
	storetest.Wants(t, err, fault.InvalidState)
	c, err := edit(d.id, func(c *contract.Contract) { c.Name = "Other" })
	if storetest.Must(t, err); c.Title("ar") != "أ" || !c.Active {
		t.Errorf("%+v", c)
	}
	next := d.version(d.id, "2")
	_, err = edit(next, version)
	storetest.Wants(t, err, fault.RecordAlreadyExist)
	d.publish(next)
	_, err = edit(d.id, names)
	storetest.Wants(t, err, fault.InvalidState)
	acts := persistencetest.Acts(t, d.db)
	storetest.Same(t, acts[1:5], []string{`CONTRACT_UPDATE|boss||1|A1: name "n" -> "N", turkish "" -> "İ"`,
		`CONTRACT_UPDATE|boss||1|A1 1: arabic "" -> "أ", version "" -> "1"`, "CONTRACT_PUBLISH|boss||1|A1 1",
		`CONTRACT_UPDATE|boss||1|A1 1: name "N" -> "Other"`})
}

// The text that users accepted does not change after a later version is published.
func TestReplacedDetails(t *testing.T) {
	d := newDesk(t)
	d.add(1, 2)
	d.publish(d.id)
	d.publish(d.version(d.id, "2")) // details 3 and 4
	for name, do := range map[string]func(ctx context.Context) error{
		"add": func(ctx context.Context) error {
			_, err := d.AddDetails(ctx, by, d.id, []contract.Draft{{Title: "x"}})
			return err
		},
		"change": func(ctx context.Context) error {
			_, err := d.ChangeDetails(ctx, by, []contract.Change{{ID: 3, Title: new("x")}, {ID: 1, Title: new("x")}})
			return err
		},
		"move": func(ctx context.Context) error {
			_, err := d.ChangeDetails(ctx, by, []contract.Change{{ID: 3, ContractID: &d.id}})
			return err
		},
		"remove": func(ctx context.Context) error { return d.RemoveDetails(ctx, by, []int64{3, 1}) },
		"reorder": func(ctx context.Context) error {
			_, err := d.Reorder(ctx, by, d.id, []contract.Place{{ID: 1, OrderNo: 9}})
			return err
		},
	} {
		if err := do(t.Context()); fault.CodeOf(err) != fault.InvalidState {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := d.order(); got != "1:1 2:2" {
		t.Errorf("the replaced version has %s", got)
	}
}

// A failed change of versions changes nothing.
func TestFailedVersions(t *testing.T) {
	d := newDesk(t)
	d.add(1)
	d.publish(d.id)
	next := d.version(d.id, "2")
	for _, do := range []func(context.Context) error{
		func(ctx context.Context) error { _, _, err := d.Publish(ctx, by, next); return err },
		func(ctx context.Context) error { _, _, err := d.Deactivate(ctx, by, next); return err },
	} {
		persistencetest.Fails(t, d.db, "contract audit", do)
	}
	persistencetest.Fails(t, d.db, "contract contract_detail audit", func(ctx context.Context) error {
		_, err := d.AddVersion(ctx, by, d.id, "3")
		return err
	})
	d.has(contract.StatusReplaced, contract.StatusInactive, contract.StatusDraft)
}

// Concurrent publications leave one active version.
func TestPublishRace(t *testing.T) {
	d := newDesk(t)
	ids := []int64{d.id}
	for _, v := range []string{"1", "2", "3", "4", "5"} {
		ids = append(ids, d.version(d.id, v))
	}
	done := make(chan error, len(ids))
	for _, id := range ids {
		go func() {
			_, _, err := d.Publish(t.Context(), by, id)
			done <- err
		}()
	}
	for range ids {
		if err := <-done; err != nil && fault.CodeOf(err) != fault.InvalidState {
			t.Error(err)
		}
	}
	want := slices.Repeat([]contract.Status{contract.StatusReplaced}, len(ids)-1)
	d.has(append(want, contract.StatusActive)...)
}

// readonly is a store that cannot write some rows.
type readonly struct {
	contract.Store
	method string
}

var errReadonly = errors.New("read only")

func (r readonly) AddDetail(ctx context.Context, d contract.Detail) (int64, error) {
	if r.method == "AddDetail" {
		return 0, errReadonly
	}
	return r.Store.AddDetail(ctx, d)
}

func (r readonly) SaveDetail(ctx context.Context, d contract.Detail) error {
	if r.method == "SaveDetail" {
		return errReadonly
	}
	return r.Store.SaveDetail(ctx, d)
}

func (r readonly) Save(ctx context.Context, c contract.Contract) error {
	if r.method == "Save" {
		return errReadonly
	}
	return r.Store.Save(ctx, c)
}

// A change of which a row cannot be written is no change, and leaves no audit row. A version that is none is refused.
func TestChangesAreWhole(t *testing.T) {
	d := newDesk(t)
	details := d.add(1, 2)
	d.publish(d.id)
	next := d.version(d.id, "2")
	_, err := d.AddVersion(t.Context(), by, d.id, strings.Repeat("9", 1000))
	storetest.WantsFields(t, err, "version")
	acts, order, stored := persistencetest.Acts(t, d.db), d.order(), d.Store
	for method, do := range map[string][]func() error{
		"AddDetail": {
			func() error {
				_, err := d.AddDetails(t.Context(), by, d.id, []contract.Draft{{Title: "x"}})
				return err
			},
			func() error { _, err := d.AddVersion(t.Context(), by, d.id, "3"); return err },
		},
		"SaveDetail": {
			func() error {
				title := "another"
				_, err := d.ChangeDetails(t.Context(), by, []contract.Change{{ID: details[0].ID, Title: &title}})
				return err
			},
			func() error {
				_, err := d.Reorder(t.Context(), by, d.id, []contract.Place{{ID: details[0].ID, OrderNo: 9}})
				return err
			},
		},
		"Save": {func() error { _, _, err := d.Publish(t.Context(), by, next); return err }},
	} {
		d.Store = readonly{stored, method}
		for i, f := range do {
			if err := f(); !errors.Is(err, errReadonly) {
				t.Errorf("%s %d: %v", method, i, err)
			}
		}
	}
	d.Store = stored
	storetest.Same(t, persistencetest.Acts(t, d.db), acts)
	if got := d.order(); got != order {
		t.Errorf("%s, not %s", got, order)
	}
	d.has(contract.StatusActive, contract.StatusDraft)
}

// An edit that changes nothing succeeds in every state, and writes nothing.
func TestEditOfNothing(t *testing.T) {
	d := newDesk(t)
	d.publish(d.id)
	d.publish(d.version(d.id, "2"))
	acts := persistencetest.Acts(t, d.db)
	_, status, err := d.Edit(t.Context(), by, d.id, func(*contract.Contract) {})
	if storetest.Must(t, err); status != contract.StatusReplaced {
		t.Error(status)
	}
	storetest.Same(t, persistencetest.Acts(t, d.db), acts)
}
