module proofinfer.example/go-server

go 1.24.0

require proofinfer.example/proofinfer v1.0.0

replace proofinfer.example/proofinfer => ../../go
