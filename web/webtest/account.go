package webtest

import (
	"path/filepath"
	"strings"
)

// Person is the user of a walk: an account, and the folder for pictures of the walk.
type Person struct {
	Country, Phone, Password string
	Shots                    string
}

// Account is the view in which an account is walked through.
var Account = View{Width: 1280, Height: 900, Language: "en"}

// Forget deletes the session that the browser keeps for the origin of the page; the page itself must be opened again.
func (tab *Tab) Forget() {
	tab.t.Helper()
	Value[bool](tab, `new Promise((done) => { const all = indexedDB.deleteDatabase('castellan-session');
		all.onsuccess = all.onerror = all.onblocked = () => done(true); })`)
}

// Visit opens the page of the service at baseURL, without a kept session.
func (tab *Tab) Visit(baseURL string) {
	tab.t.Helper()
	at := strings.TrimSuffix(baseURL, "/") + "/"
	tab.Open(at)
	tab.Until("document.body.dataset.ready === 'true'")
	tab.Forget()
	tab.Open(at)
	tab.Until("document.body.dataset.ready === 'true'")
	tab.View(Account)
}

// Enter logs in with codes from the outbox.
func (tab *Tab) Enter(who Person) {
	tab.t.Helper()
	tab.Login(who.Country, who.Phone, who.Password)
	tab.See("#challenge-step")
	tab.AnswerByOutbox()
	tab.See("#session-step")
}

// Leave logs out.
func (tab *Tab) Leave() {
	tab.t.Helper()
	tab.Click("#logout")
	tab.See("#login-form")
}

// inArabic is the other view of each picture.
var inArabic = View{Width: 360, Height: 780, Phone: true, Dark: true, Language: "ar"}

// Shot writes two pictures of the page: on a wide screen, light and in English, and on a phone, dark and from right to
// left. Nothing may be wider than the screen.
func (tab *Tab) Shot(who Person, name string) {
	tab.t.Helper()
	look := func(name string) {
		tab.t.Helper()
		if wide := Value[int](tab, "document.documentElement.scrollWidth - document.documentElement.clientWidth"); wide > 0 {
			tab.t.Errorf("%s is %d pixels too wide", name, wide)
		}
		tab.Screenshot(tab.t, filepath.Join(who.Shots, name+".png"))
	}
	look(name)
	tab.View(inArabic)
	look(name + "-phone")
	tab.View(Account)
}
