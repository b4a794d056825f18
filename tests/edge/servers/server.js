// Node behind the gate: answers {} to everything, and prints each request that it sees.
const http = require('node:http');

const server = http.createServer({ maxHeaderSize: 65536, requestTimeout: 0 }, (request, response) => {
  console.log(`${request.method} ${request.url} ${request.headers['x-request-id']}`);
  request.resume();
  request.on('end', () => {
    response.setHeader('Content-Type', 'application/json');
    response.end('{}');
  });
});
server.keepAliveTimeout = 600000;
// What Node's parser refuses has been seen too. Other errors are those of the connection.
server.on('clientError', (error, socket) => {
  if (String(error.code).startsWith('HPE_')) console.log(`? ${error.code} ?`);
  socket.destroy();
});
server.listen(Number(process.argv[2]), '127.0.0.1');
