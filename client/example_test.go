package client_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"castellan/client"
)

// answers is a service that gives the same answer to every request.
func answers(status int, body string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
}

// A login by mail and password, with the code of the first method. The session is then in Token, and the client renews
// it, because it is bound to a key.
func ExampleClient_Login() {
	ctx := context.Background()
	c, err := client.New("https://id.example.com")
	if err != nil {
		log.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		log.Fatal(err)
	}
	c.Key = client.NewKey(key)
	f, err := c.Login(ctx, client.Credentials{Email: "ada@example.com", Password: "a long password"})
	if err != nil {
		log.Fatal(err)
	}
	var code string
	fmt.Scanln(&code)
	o, err := f.Complete(ctx, f.Methods[0], code)
	if err != nil {
		log.Fatal(err)
	}
	if !o.Done {
		fmt.Println("another method is left")
	}
}

// A refusal has a code, which is the same in every language.
func ExampleCodeOf() {
	s := answers(http.StatusUnauthorized, `{"code":"TOKEN_EXPIRED","detail":"the token has expired"}`)
	defer s.Close()
	c, _ := client.New(s.URL)
	err := c.Call(context.Background(), "GET", "/auth/sessions", nil, nil)
	if client.CodeOf(err) == "TOKEN_EXPIRED" {
		fmt.Println(err)
	}
	// Output: TOKEN_EXPIRED: the token has expired
}

// A request with Once has its effect once, although it is repeated after a lost answer.
func ExampleOnce() {
	s := answers(http.StatusOK, `{"jobId":"01K8VSBQJ0TCCPEX7Q5YGHP4PY"}`)
	defer s.Close()
	c, _ := client.New(s.URL)
	var job struct {
		JobID string `json:"jobId"`
	}
	text := map[string]string{"message": "The office is closed on Monday."}
	if err := c.Call(context.Background(), "POST", "/send-bulk-sms", text, &job, client.Once("notice-42")); err != nil {
		log.Fatal(err)
	}
	fmt.Println(job.JobID)
	// Output: 01K8VSBQJ0TCCPEX7Q5YGHP4PY
}

// A device shows what it approves: the title and every row.
func ExampleClient_Ongoing() {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	s := answers(http.StatusOK, `[{"data":{"challengeId":"c1"},"intent":{"v":1,"title":"Pay",
		"rows":[{"key":"amount","label":"You pay","value":"25.00 EUR"}]}}]`)
	defer s.Close()
	c, _ := client.New(s.URL)
	var waiting []client.Approval
	if err := c.Ongoing(context.Background(), &client.Device{ID: "d1", Key: key}, &waiting); err != nil {
		log.Fatal(err)
	}
	for _, a := range waiting {
		fmt.Println(a.Intent.Title)
		for _, row := range a.Intent.Rows {
			fmt.Println(row.Label, row.Value)
		}
	}
	// Output:
	// Pay
	// You pay 25.00 EUR
}

// A service puts a payment behind a challenge, and executes it once.
func ExampleClient_Guard() {
	ctx := context.Background()
	c, _ := client.New("https://id.example.com")
	service := c.Service("shop.key")
	f, err := service.Guard(ctx, client.GuardRequest{ActionCode: "PAYMENT", UserID: "42", Title: "Pay", Reference: "o-1",
		Rows: []client.GuardRow{{Key: "amount", Label: "You pay", Value: "25.00 EUR"}}, Payload: json.RawMessage(`{}`)})
	if err != nil {
		log.Fatal(err)
	}
	o, err := service.GuardOutcome(ctx, f.ID)
	if err != nil || o.Status != "COMPLETED" {
		return
	}
	if _, err := service.RedeemGrant(ctx, o.Grant); err == nil {
		fmt.Println("paid")
	}
}
