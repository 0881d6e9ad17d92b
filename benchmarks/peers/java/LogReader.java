import com.github.shyiko.mysql.binlog.BinaryLogClient;
import com.github.shyiko.mysql.binlog.BinaryLogFileReader;
import com.github.shyiko.mysql.binlog.event.DeleteRowsEventData;
import com.github.shyiko.mysql.binlog.event.Event;
import com.github.shyiko.mysql.binlog.event.EventData;
import com.github.shyiko.mysql.binlog.event.UpdateRowsEventData;
import com.github.shyiko.mysql.binlog.event.WriteRowsEventData;
import com.github.shyiko.mysql.binlog.event.deserialization.EventDeserializer;
import com.github.shyiko.mysql.binlog.network.SSLMode;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;

/**
 * Reads binlogs with mysql-binlog-connector-java as fast as it can, and counts rows.
 *
 * <p>Commands come as lines on standard input, words separated by tabs, and each is answered by one
 * line of JSON. The process lives on between commands, so later ones meet a warm JVM.
 *
 * <pre>
 * memory  PATH                          the file's bytes, read beforehand
 * file    PATH                          the library's own way to read a file
 * socket  HOST PORT USER PASSWORD FILE BYTES  a dump of the file, up to BYTES of it
 * </pre>
 */
public final class LogReader {
  private long rows;

  private void count(Event event) {
    EventData data = event.getData();
    if (data instanceof WriteRowsEventData) {
      rows += ((WriteRowsEventData) data).getRows().size();
    } else if (data instanceof UpdateRowsEventData) {
      rows += ((UpdateRowsEventData) data).getRows().size();
    } else if (data instanceof DeleteRowsEventData) {
      rows += ((DeleteRowsEventData) data).getRows().size();
    }
  }

  private void readAll(BinaryLogFileReader reader) throws IOException {
    try {
      for (Event event = reader.readEvent(); event != null; event = reader.readEvent()) {
        count(event);
      }
    } finally {
      reader.close();
    }
  }

  private double memory(String path) throws IOException {
    byte[] bytes = Files.readAllBytes(new File(path).toPath());
    long begin = System.nanoTime();
    readAll(new BinaryLogFileReader(new ByteArrayInputStream(bytes), new EventDeserializer()));
    return (System.nanoTime() - begin) / 1e9;
  }

  private double file(String path) throws IOException {
    long begin = System.nanoTime();
    readAll(new BinaryLogFileReader(new File(path), new EventDeserializer()));
    return (System.nanoTime() - begin) / 1e9;
  }

  /** From the first event of the file on, so that connecting does not count. */
  private double socket(String[] words) throws IOException {
    BinaryLogClient client =
        new BinaryLogClient(words[1], Integer.parseInt(words[2]), words[3], words[4]);
    client.setServerId(1_500_000_000L + System.nanoTime() % 1_000_000);
    client.setSSLMode(SSLMode.DISABLED);
    client.setBlocking(false);
    client.setKeepAlive(false);
    String file = words[5];
    long end = Long.parseLong(words[6]);
    client.setBinlogFilename(file);
    client.setBinlogPosition(4);
    long[] times = new long[2];
    client.registerEventListener(
        event -> {
          if (times[0] == 0) {
            times[0] = System.nanoTime();
          }
          if (times[1] == 0) {
            count(event);
            if (!client.getBinlogFilename().equals(file) || client.getBinlogPosition() >= end) {
              times[1] = System.nanoTime();
            }
          }
        });
    client.connect();
    if (times[1] == 0) {
      throw new IOException("the dump ended before the file's end");
    }
    return (times[1] - times[0]) / 1e9;
  }

  private String answer(String[] words) {
    rows = 0;
    double seconds;
    try {
      switch (words[0]) {
        case "memory":
          seconds = memory(words[1]);
          break;
        case "file":
          seconds = file(words[1]);
          break;
        case "socket":
          seconds = socket(words);
          break;
        default:
          return "{\"error\": \"no such command\"}";
      }
    } catch (IOException | RuntimeException error) {
      String text = String.valueOf(error).replaceAll("[\"\\\\\\p{Cntrl}]", " ");
      return "{\"error\": \"" + text + "\", \"rows\": " + rows + "}";
    }
    return "{\"rows\": " + rows + ", \"seconds\": " + seconds + "}";
  }

  public static void main(String[] arguments) throws IOException {
    BufferedReader commands =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = commands.readLine(); line != null; line = commands.readLine()) {
      System.out.println("answer " + new LogReader().answer(line.split("\t", -1)));
      System.out.flush();
    }
  }
}
